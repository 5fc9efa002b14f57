"""TMA atoms: boxes and coordinates, tiles that overlap the edge, and what goes wrong."""

import re

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLRuntimeError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra import gmma_smem_atom, tile_to_shape
from basedsl_cute.nvgpu import tma
from basedsl_cute.nvgpu.tma_box import Modes


def smem_layout(kind, tile, dtype, order=(0, 1)):
    if kind is None:
        return cute.make_layout(tile, stride=(tile[1], 1))
    return tile_to_shape(gmma_smem_atom(kind, dtype.width), tile, order)


@cute.kernel
def copy_tile(load, source, store, target, layout: cute.Constexpr, waits: cute.Constexpr):
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    dtype = load.value_type
    if cute.const_expr(isinstance(layout, cute.ComposedLayout)):
        swizzle = cute.recast_layout(8, dtype.width, layout.inner)
        tile = smem.allocate_tensor(dtype, layout.outer, 1024, swizzle)
    else:
        tile = smem.allocate_tensor(dtype, layout, 1024)
    shape = tuple(cute.size(layout, mode=[i]) for i in (0, 1))
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    grouped = cute.group_modes(tile, 0, 2)
    ts_s, ts_g = tma.tma_partition(load, 0, None, grouped, cute.zipped_divide(source, shape))
    td_s, td_g = tma.tma_partition(store, 0, None, grouped, cute.zipped_divide(target, shape))
    x, y, _ = arch.block_idx()
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(barrier, cute.cosize(layout) * dtype.width // 8)
            cute.copy(load, ts_g[None, (x, y)], ts_s, tma_bar_ptr=barrier)
    if cute.const_expr(waits):
        arch.mbarrier_wait(barrier, 0)
    arch.fence_view_async_shared()
    arch.sync_threads()
    if arch.warp_idx() == 0:
        cute.copy(store, td_s, td_g[None, (x, y)])
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def through_smem(
    a: cute.Tensor,
    b: cute.Tensor,
    kind: cute.Constexpr,
    tile: cute.Constexpr,
    order: cute.Constexpr = (0, 1),
    waits: cute.Constexpr = True,
):
    layout = smem_layout(kind, tile, a.element_type, order)
    load, source = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, tile)
    store, target = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileS2GOp(), b, layout, tile)
    m, n = a.shape
    grid = (cute.ceil_div(m, tile[0]), cute.ceil_div(n, tile[1]), 1)
    copy_tile(load, source, store, target, layout, waits).launch(grid=grid, block=64)


def arrays(m, n, dtype=np.float16, transposed=False):
    a = np.arange(m * n).astype(dtype).reshape((n, m) if transposed else (m, n))
    b = np.full_like(a, 7)
    return (a.T, b.T) if transposed else (a, b)


@pytest.mark.parametrize("kind", ["K_SW128", "K_SW64", "K_SW32", "K_INTER", None])
@pytest.mark.parametrize("shape", [(64, 64), (72, 200)])
def test_row_major_tiles(hopper, kind, shape):
    a, b = arrays(*shape)
    through_smem(a, b, kind, (32, 64))
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("kind", ["MN_SW128", "MN_SW64", "MN_SW32"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_column_major_tiles(hopper, kind, order):
    a, b = arrays(136, 40, transposed=True)
    through_smem(a, b, kind, (64, 16), order)
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64])
def test_other_element_types(hopper, dtype):
    a, b = arrays(40, 48, dtype)
    through_smem(a, b, "K_SW32", (16, 32))
    np.testing.assert_array_equal(b, a)


def box_of(layout, tiler, stride, bits):
    """The box for tiles of a tensor with flat modes of these strides."""
    modes = Modes(tiler, stride, tuple((i,) for i in range(len(stride))))
    return tma.find_box(layout, cute.make_identity_layout(tiler), modes, bits)


def test_how_far_a_box_reaches():
    k_major = smem_layout("K_SW128", (128, 64), cute.Float16)
    assert box_of(k_major, (128, 64), (512, 1), 16) == tma.Box((1, 0), (64, 128), 3)
    batched = box_of(k_major, (128, 64, 1), (512, 1, 4096), 16)
    assert batched == tma.Box((1, 0, 2), (64, 128, 1), 3)
    m_major = smem_layout("MN_SW128", (128, 64), cute.Float16, (1, 0))
    assert box_of(m_major, (128, 64), (1, 512), 16) == tma.Box((0, 1), (64, 64), 3)
    with pytest.raises(DSLTypeError, match="not contiguous in the mode that is contiguous"):
        box_of(k_major, (128, 64), (1, 512), 16)


@cute.kernel
def load_row(load, source, out, mask: cute.Int32):
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((1, 32)), 128)
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_init(barrier, 1)
            arch.mbarrier_arrive_and_expect_tx(barrier, 128)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    block, t = arch.block_idx()[0], arch.thread_idx()[0]
    tile_s, tile_g = tma.tma_partition(
        load, 0, None, cute.group_modes(tile, 0, 2), cute.zipped_divide(source, (1, 32))
    )
    cute.copy(load, tile_g[None, (block, 0)], tile_s, tma_bar_ptr=barrier, mcast_mask=mask)
    arch.mbarrier_wait(barrier, 0)
    out[block, t] = tile[0, t]


def test_a_load_without_multicast_is_for_its_block_whatever_the_mask(hopper):
    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor, mask: cute.Int32):
        layout = cute.make_layout((1, 32), stride=(32, 1))
        load, source = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, (1, 32))
        load_row(load, source, out, mask).launch(grid=2, block=32, cluster=(2, 1, 1))

    a = np.arange(64, dtype=np.float32).reshape(2, 32)
    for mask in (0, 3):
        out = np.zeros_like(a)
        host(a, out, mask)
        np.testing.assert_array_equal(out, a)


def test_parts_for_several_blocks_need_a_multicast(sim):
    @cute.jit
    def host(a: cute.Tensor):
        tma.make_tiled_tma_atom(
            tma.CopyBulkTensorTileG2SOp(), a, cute.make_layout((4, 64)), (4, 64), num_multicast=2
        )

    with pytest.raises(DSLTypeError, match="num_multicast=2 needs CopyBulkTensorTileG2SMulticast"):
        cute.compile(host, np.zeros((4, 64), np.float16))


def test_reading_without_waiting_is_found(sim):
    a, b = arrays(32, 64)
    with pytest.raises(DSLError, match=r"race on shared memory|no thread has written"):
        through_smem(a, b, "K_SW128", (32, 64), waits=False)


@cute.kernel
def only_prefetch(load):
    tma.prefetch_descriptor(load)


@cute.jit
def make_atom(a: cute.Tensor, rows: cute.Int32, stride: cute.Int32, skip: cute.Int32):
    """Encodes a tensor map of `rows` x 64, from element `skip` of `a` on."""
    part = cute.make_tensor(a.iterator + skip, cute.make_layout((rows, 64), stride=(stride, 1)))
    layout = cute.make_layout((8, 64), stride=(64, 1))
    load, _ = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), part, layout, (8, 64))
    only_prefetch(load).launch(grid=1, block=32)


@pytest.mark.parametrize(
    "numbers, message",
    [
        (
            (32, 68, 0),
            r"the stride of mode 0 is not one of the multiples of 16 bytes \(8 elements\)",
        ),
        ((32, 64, 4), "its first element is not at a multiple of 16 bytes"),
        ((0, 64, 0), "mode 0 has no elements"),
        ((32, -64, 0), "the stride of mode 0 is negative"),
    ],
)
def test_tensors_that_tma_does_not_copy(hopper, numbers, message):
    a = np.zeros(64 * 64, np.float16)
    make_atom(a, 32, 64, 8)
    with pytest.raises(DSLRuntimeError, match=f"TMA cannot copy this tensor: {message}") as error:
        make_atom(a, *numbers)
    assert "load, _ = tma.make_tiled_tma_atom(" in str(error.value)


@pytest.mark.parametrize(
    "tile, swizzled, message",
    [
        ((8, 4), None, "a multiple of 16 bytes, not 8"),
        ((8, 64), "K_SW64", "rows of 128 bytes are swizzled within 64"),
    ],
)
def test_boxes_that_tma_does_not_copy(sim, tile, swizzled, message):
    @cute.jit
    def host(a: cute.Tensor):
        if cute.const_expr(swizzled is None):
            layout = cute.make_layout(tile, stride=(tile[1], 1))
        else:
            atom = gmma_smem_atom(swizzled, 16)
            layout = cute.make_composed_layout(
                atom.inner, 0, cute.make_layout(tile, stride=(64, 1))
            )
        tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, tile)

    with pytest.raises(DSLTypeError, match=message):
        cute.compile(host, np.zeros((32, 64), np.float16))


@cute.kernel
def copy_box(load, source, store, target, shape: cute.Constexpr, dtype: cute.Constexpr):
    """One tile of any number of modes there and back, by warp 0."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    layout = cute.make_layout(shape)
    tile = smem.allocate_tensor(dtype, layout, 128)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    grouped = cute.group_modes(tile, 0, len(shape))
    here = cute.zipped_divide(source, shape)[None, arch.block_idx()[0]]
    there = cute.zipped_divide(target, shape)[None, arch.block_idx()[0]]
    ts_s, ts_g = tma.tma_partition(load, 0, None, grouped, here)
    td_s, td_g = tma.tma_partition(store, 0, None, grouped, there)
    cute.prefetch(load, ts_g)
    with arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(barrier, cute.size(layout) * dtype.width // 8)
    cute.copy(load, ts_g, ts_s, tma_bar_ptr=barrier)
    arch.mbarrier_wait(barrier, 0)
    cute.copy(store, td_s, td_g)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


STORE = tma.CopyBulkTensorTileS2GOp()


@cute.jit
def copy_boxes(
    a: cute.Tensor,
    b: cute.Tensor,
    shape: cute.Constexpr,
    op: cute.Constexpr = STORE,
    internal_type: cute.Constexpr = None,
):
    layout, dtype = cute.make_layout(shape), internal_type or a.element_type
    load, source = tma.make_tiled_tma_atom(
        tma.CopyBulkTensorTileG2SOp(), a, layout, shape, internal_type=internal_type
    )
    store, target = tma.make_tiled_tma_atom(op, b, layout, shape, internal_type=internal_type)
    tiles = cute.size(cute.zipped_divide(a, shape), mode=[1])
    copy_box(load, source, store, target, shape, dtype).launch(grid=tiles, block=32)


def reversed_modes(x):
    """The same array with mode 0 contiguous, as CuTe counts."""
    return x.transpose(*range(x.ndim)[::-1])


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_tensors_of_every_rank(hopper, rank):
    extents, tile = (3, 2, 5, 4, 40)[-rank:], (16, 2, 4, 1, 2)[:rank]
    a = np.arange(np.prod(extents), dtype=np.float32).reshape(extents)
    b = np.full_like(a, -1)
    copy_boxes(reversed_modes(a), reversed_modes(b), tile)
    cute.synchronize()
    np.testing.assert_array_equal(b, a)


TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES += ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]


@cute.kernel
def read_edge(load, source, out: cute.Tensor, shape: cute.Constexpr, dtype: cute.Constexpr):
    """The last tile, half of which lies beyond the tensor, as bytes."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    tile = smem.allocate_tensor(dtype, cute.make_layout(shape), 128)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    s, g = tma.tma_partition(
        load, 0, None, cute.group_modes(tile, 0, 2), cute.zipped_divide(source, shape)
    )
    with arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(barrier, cute.size(tile) * dtype.width // 8)
    cute.copy(load, g[None, (0, 1)], s, tma_bar_ptr=barrier)
    arch.mbarrier_wait(barrier, 0)
    as_bytes = cute.recast_tensor(tile, cute.Uint8)
    for i in range(arch.thread_idx()[0], cute.size(as_bytes), 32):
        out[i] = as_bytes[i]


@pytest.mark.parametrize("name", TYPES)
def test_zeros_beyond_the_edge_for_every_type(hopper, name):
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    a = np.arange(3 * 16).astype(np.float32).astype(dtype).reshape(3, 16)
    shape = (16, 2)

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        op = tma.CopyBulkTensorTileG2SOp()
        load, source = tma.make_tiled_tma_atom(op, a, cute.make_layout(shape), shape)
        read_edge(load, source, out, shape, a.element_type).launch(grid=1, block=32)

    out = np.full(32 * dtype.itemsize, 99, np.uint8)
    host(cute_tensor(a.T), out)
    cute.synchronize()
    expected = np.concatenate([a[2], np.zeros(16, dtype)])
    np.testing.assert_array_equal(out, expected.view(np.uint8))


def cute_tensor(x):
    """An array of any type: NumPy's own go as they are, others by their bits."""
    if x.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        raw = x.view(np.uint8 if x.itemsize == 1 else np.uint16)
        tensor = cute.runtime.from_dlpack(raw)
        tensor.element_type = {
            "bfloat16": cute.BFloat16,
            "float8_e4m3fn": cute.Float8E4M3FN,
            "float8_e5m2": cute.Float8E5M2,
        }[x.dtype.name]
        return tensor
    return x


REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, limit: np.where(old >= limit, 0, old + 1),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1),
}


@pytest.mark.parametrize(
    "kind, dtype",
    [(kind, "uint32") for kind in REDUCTIONS]
    + [
        ("add", "float32"),
        ("add", "float16"),
        ("max", "float16"),
        ("min", "int64"),
        ("add", "int32"),
    ],
)
def test_reductions_into_global_memory(hopper, kind, dtype):
    rng = np.random.default_rng(4)
    a, b = (rng.integers(0, 9, (6, 40)).astype(dtype) for _ in range(2))
    expected = REDUCTIONS[kind](b, a).astype(dtype)
    op = tma.CopyReduceBulkTensorTileS2GOp(kind)
    copy_boxes(reversed_modes(a), reversed_modes(b), (16, 4), op)
    cute.synchronize()
    np.testing.assert_array_equal(b, expected)


def test_a_reduction_by_its_name_in_cute(sim):
    op = tma.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.MAX)
    assert op.kind == "max"
    with pytest.raises(DSLTypeError, match="'mul' is none of add"):
        tma.CopyReduceBulkTensorTileS2GOp("mul")
    with pytest.raises(DSLTypeError, match="no reduction 'min' of Float32") as error:
        a = np.zeros((16, 16), np.float32)
        copy_boxes(a.T, a.T, (16, 4), tma.CopyReduceBulkTensorTileS2GOp("min"))
    assert "it has 'min' of Uint32, Int32" in str(error.value)


def test_elements_of_another_type_in_shared_memory(hopper):
    a, b = arrays(40, 16, np.float32)
    copy_boxes(a.T, b.T, (16, 8), internal_type=cute.TFloat32)
    cute.synchronize()
    np.testing.assert_array_equal(b, a)
    with pytest.raises(
        DSLTypeError, match="internal_type=Float16 has 16 bits, the tensor's elements have 32"
    ):
        copy_boxes(a.T, b.T, (16, 8), internal_type=cute.Float16)


def test_a_tile_longer_than_a_box(hopper):
    a, b = arrays(384, 16, np.float32)
    copy_boxes(a.T, b.T, (16, 384))
    cute.synchronize()
    np.testing.assert_array_equal(b, a)
    assert box_of(cute.make_layout((16, 384)), (16, 384), (1, 16), 32).extents == (16, 192)


@pytest.mark.parametrize(
    "shape, dtype, expected",
    [
        ((320, 4), np.float16, (64, 1)),
        ((768, 4), np.uint8, (256, 1)),
        ((8, 280), np.float32, (8, 140)),
    ],
)
def test_the_parts_of_long_tiles(hopper, shape, dtype, expected):
    """Equal parts, each of them whole 128 bytes in shared memory."""
    m, n = shape
    a, b = arrays(n, m, dtype)
    copy_boxes(a.T, b.T, shape)
    cute.synchronize()
    np.testing.assert_array_equal(b, a)
    bits = 8 * np.dtype(dtype).itemsize
    assert box_of(cute.make_layout(shape), shape, (1, m), bits).extents == expected


@pytest.mark.parametrize(
    "shape, stride, message",
    [
        ((264, 4), None, "a tile of 264 elements in mode 0 cannot be split into equal TMA boxes"),
        ((16, 257), None, "a tile of 257 elements in mode 1 cannot be split into equal TMA boxes"),
        ((16, 8), (1, 32), "a TMA box of (16,) elements has 32 bytes, no multiple of 128"),
    ],
)
def test_tiles_that_no_equal_boxes_are(shape, stride, message):
    layout = cute.make_layout(shape, stride=stride) if stride else cute.make_layout(shape)
    with pytest.raises(DSLTypeError, match=re.escape(message)):
        box_of(layout, shape, (1, 512), 16)


def test_a_tensor_map_of_host_code_that_launches_nothing(hopper):
    @cute.jit
    def host(a: cute.Tensor):
        tma.make_tiled_tma_atom(
            tma.CopyBulkTensorTileG2SOp(), a, cute.make_layout((16, 8)), (16, 8)
        )
        return a.shape[0] + 1

    assert host(np.zeros((16, 40), np.float32).T) == 41


def test_a_barrier_is_needed(sim):
    @cute.kernel
    def kernel(load, source):
        tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, (64, 64), 1024)
        s, g = tma.tma_partition(
            load, 0, None, cute.group_modes(tile, 0, 2), cute.zipped_divide(source, (64, 64))
        )
        cute.copy(load, g[None, (0, 0)], s)

    @cute.jit
    def host(a: cute.Tensor):
        layout = cute.make_layout((64, 64))
        kernel(*tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, (64, 64))).launch(
            grid=1, block=32
        )

    with pytest.raises(DSLTypeError, match="needs the mbarrier that it completes"):
        host(arrays(64, 64, transposed=True)[0])


def test_a_tensor_map_is_made_by_the_host(sim):
    @cute.kernel
    def kernel(a: cute.Tensor):
        layout = cute.make_layout((64, 64))
        tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, (64, 64))

    @cute.jit
    def host(a: cute.Tensor):
        kernel(a).launch(grid=1, block=32)

    with pytest.raises(DSLError, match="encoded by the host"):
        host(arrays(64, 64, transposed=True)[0])


@pytest.mark.parametrize(
    "operand, cluster, blocks", [("A", (1, 1, 2, 1), 2), ("B", (1, 4, 2, 1), 4)]
)
def test_atoms_of_operands_are_divided_among_the_blocks_of_a_cluster(sim, operand, cluster, blocks):
    """The same box as with the tile and the number of blocks written out."""
    op = tma.CopyBulkTensorTileG2SMulticastOp()

    @cute.kernel
    def kernel(load, source):
        tma.prefetch_descriptor(load)

    @cute.jit
    def host(a: cute.Tensor, by_operand: cute.Constexpr):
        layout = smem_layout("K_SW128", (64, 64), cute.Float16)
        if cute.const_expr(not by_operand):
            made = tma.make_tiled_tma_atom(op, a, layout, (64, 64), blocks)
        else:
            make = cute.nvgpu.make_tiled_tma_atom_A
            if cute.const_expr(operand == "B"):
                make = cute.nvgpu.make_tiled_tma_atom_B
            made = make(op, a, layout, (64, 64, 64), None, cluster)
        kernel(*made).launch(grid=1, block=32)

    a = np.zeros((64, 64), np.float16)
    boxes = []
    for by_operand in (False, True):
        text = cute.compile(host, a, by_operand).stages.text("llvmir")
        boxes.append(re.findall(r"store i32 (\d+),", text))
    assert boxes[0] == boxes[1] and str(64 // blocks) in boxes[0]


@pytest.mark.parametrize("promotion, number", [(0, 0), (64, 1), (128, 2), (256, 3)])
def test_how_much_a_load_brings_into_l2(sim, promotion, number):
    """The last numbers of the encoding are interleave, swizzle, promotion and fill."""

    @cute.kernel
    def kernel(load, source):
        tma.prefetch_descriptor(load)

    @cute.jit
    def host(a: cute.Tensor):
        layout = smem_layout("K_SW128", (64, 64), cute.Float16)
        op = tma.CopyBulkTensorTileG2SOp()
        made = tma.make_tiled_tma_atom(op, a, layout, (64, 64), l2_promotion=promotion)
        kernel(*made).launch(grid=1, block=32)

    text = cute.compile(host, np.zeros((64, 64), np.float16)).stages.text("llvmir")
    (call,) = re.findall(r"call .*@basedsl_encode_tensor_map\((.*)\)", text)
    assert re.findall(r"i32 (\d+)", call)[-4:] == ["0", "3", str(number), "0"]


def test_no_such_promotion(sim):
    @cute.jit
    def host(a: cute.Tensor):
        layout = smem_layout("K_SW128", (64, 64), cute.Float16)
        tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, (64, 64), l2_promotion=32)

    with pytest.raises(DSLTypeError, match="l2_promotion is 0, 64, 128 or 256 bytes, not 32"):
        host(np.zeros((64, 64), np.float16))
