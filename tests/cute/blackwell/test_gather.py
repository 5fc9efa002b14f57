"""TMA gathers and scatters of four rows against NumPy, and as PTX."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import cpasync, tcgen05
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim.errors import SimulationError

K = tcgen05.SmemLayoutAtomKind
SW = {"none": None, "32": K.K_SW32, "64": K.K_SW64, "128": K.K_SW128}


def parts(atom, coordinates, tile, here, k):
    whole = cute.local_tile(coordinates, tile, (0, k))
    return cpasync.tma_partition(
        atom,
        smem_tensor=cute.group_modes(here, 0, 2),
        gmem_tensor=cute.group_modes(whole, 0, 2),
    )


@cute.kernel
def move_rows(
    gather,
    source,
    scatter,
    target,
    sources: cute.Tensor,
    targets: cute.Tensor,
    tile: cute.Constexpr,
    layout: cute.Constexpr,
):
    """One tile of columns of the source's rows `sources` to the target's rows `targets`."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    here = smem.allocate_tensor(
        gather.value_type,
        layout.outer if isinstance(layout, cute.ComposedLayout) else layout,
        1024,
        layout.inner if isinstance(layout, cute.ComposedLayout) else None,
    )
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    k, _, _ = arch.block_idx()
    to, at = parts(gather, source, tile, here, k)
    with arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(gather.value_type, layout))
    cute.copy(gather, at, to, rows=sources, tma_bar_ptr=barrier)
    arch.mbarrier_wait(barrier, 0)
    at, to = parts(scatter, target, tile, here, k)
    numbers = [targets[i] for i in range(tile[0])]
    cute.copy(scatter, at, to, rows=numbers)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


@cute.jit
def permute(
    x: cute.Tensor,
    y: cute.Tensor,
    sources: cute.Tensor,
    targets: cute.Tensor,
    tile: cute.Constexpr,
    swizzle: cute.Constexpr,
    blocks: cute.Constexpr = 1,
):
    if cute.const_expr(SW[swizzle] is None):
        layout = cute.make_ordered_layout(tile, order=(1, 0))
    else:
        small = tcgen05.make_smem_layout_atom(SW[swizzle], x.element_type)
        layout = cute.tile_to_shape(small, tile, (0, 1))
    load = cpasync.CopyBulkTensorTileGather4G2SOp(blocks)
    store = cpasync.CopyBulkTensorTileScatter4S2GOp()
    gather, source = cpasync.make_tiled_tma_atom(load, x, layout, tile)
    scatter, target = cpasync.make_tiled_tma_atom(store, y, layout, tile)
    grid = cute.ceil_div(cute.size(x, mode=[1]), tile[1])
    move_rows(gather, source, scatter, target, sources, targets, tile, layout).launch(
        grid=grid, block=32, cluster=(blocks, 1, 1)
    )


def arguments(rng, dtype, shape, rows):
    x = rng.integers(-100, 100, shape).astype(dtype)
    y = np.full((shape[0] + 3, shape[1]), 7, dtype)
    sources = rng.integers(-3, shape[0] + 3, rows, np.int32)  # repeated and outside, too
    targets = rng.permutation(y.shape[0] + rows // 4)[:rows].astype(np.int32)
    return x, y, sources, targets


@pytest.mark.parametrize(
    ("dtype", "tile", "columns", "swizzle"),
    [
        (np.float16, (4, 64), 64, "none"),
        (np.float16, (16, 128), 256, "128"),
        (np.float32, (8, 32), 52, "64"),  # columns outside as well
        (np.int8, (12, 64), 64, "none"),
        (np.float32, (8, 16), 16, "32"),
    ],
)
def test_rows_in_any_order(sim, dtype, tile, columns, swizzle):
    rng = np.random.default_rng(columns)
    rows = tile[0]
    x, y, sources, targets = arguments(rng, dtype, (40, columns), rows)
    sources[:3] = sources[3]
    wanted = y.copy()
    for source, to in zip(sources, targets, strict=True):
        if to < len(y):
            wanted[to] = x[source] if 0 <= source < len(x) else 0
    permute(*(from_dlpack(a, assumed_align=16) for a in (x, y, sources, targets)), tile, swizzle)
    cute.synchronize()
    np.testing.assert_array_equal(y, wanted)


def compiled(target, blocks=1):
    a = arguments(np.random.default_rng(0), np.float16, (40, 128), 16)
    tensors = [from_dlpack(x, assumed_align=16) for x in a]
    return cute.compile(permute, *tensors, (16, 64), "128", blocks, options=f"--arch {target}")


def test_ptx():
    text = compiled("sm_100a").stages.text("ptx")
    gather = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier"
    scatter = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
    assert text.count(gather) == text.count(scatter) == 4  # of four rows
    if ptxas.find_ptxas() is not None:
        assert ptxas.start(text, "sm_100a").finish().cubin
    with pytest.raises(
        DSLTypeError, match=r"sm_90a has no cp\.async\.bulk\.tensor\.tile::gather4: sm"
    ):
        compiled("sm_90a")


def test_ptx_of_a_pair():
    """The bytes count at the even block: its barrier, in the cluster's memory."""
    text = compiled("sm_100a", 2).stages.text("ptx")
    gather = "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx"
    assert text.count(gather) == text.count(".cta_group::2 [") == 4
    if ptxas.find_ptxas() is not None:
        assert ptxas.start(text, "sm_100a").finish().cubin


@cute.kernel
def gather_by_pair(gather, source, sources: cute.Tensor, y: cute.Tensor, layout: cute.Constexpr):
    """Each block of a pair gathers four rows; all bytes count at the even block."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    here = smem.allocate_tensor(gather.value_type, layout, 1024)
    t, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    if t == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.cluster_arrive()
    arch.cluster_wait()
    if block == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(
                barrier, 2 * cute.size_in_bytes(gather.value_type, layout)
            )
    to, at = parts(gather, source, (4, 32), here, 0)
    cute.copy(gather, at, to, rows=[sources[block, i] for i in range(4)], tma_bar_ptr=barrier)
    if block == 0:
        arch.mbarrier_wait(barrier, 0)
    arch.cluster_arrive()
    arch.cluster_wait()
    for i in range(4):
        y[block, i, t] = here[i, t]


@cute.jit
def rows_of_pair(x: cute.Tensor, sources: cute.Tensor, y: cute.Tensor):
    layout = cute.make_ordered_layout((4, 32), order=(1, 0))
    op = cpasync.CopyBulkTensorTileGather4G2SOp(tcgen05.CtaGroup.TWO)
    atom, source = cpasync.make_tiled_tma_atom(op, x, layout, (4, 32))
    gather_by_pair(atom, source, sources, y, layout).launch(grid=2, block=32, cluster=(2, 1, 1))


def test_the_bytes_of_a_pair_count_at_the_even_block(sim):
    x = np.arange(20 * 32, dtype=np.float32).reshape(20, 32)
    sources = np.array([[3, 19, 3, 0], [7, 20, 1, -1]], np.int32)
    y = np.full((2, 4, 32), -1, np.float32)
    rows_of_pair(*(from_dlpack(a, assumed_align=16) for a in (x, sources, y)))
    cute.synchronize()
    inside = (sources >= 0) & (sources < 20)
    np.testing.assert_array_equal(y, np.where(inside[..., None], x[sources % 20], 0))


@cute.kernel
def gather_for_all(
    gather,
    source,
    numbers: cute.Tensor,
    y: cute.Tensor,
    tile: cute.Constexpr,
    layout: cute.Constexpr,
    blocks: cute.Constexpr,
):
    """Each block of a cluster gathers a part of the rows for all of them."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    here = smem.allocate_tensor(
        gather.value_type, layout.outer, byte_alignment=1024, swizzle=layout.inner
    )
    t, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    if t == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    with arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(gather.value_type, layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    whole = cute.local_tile(source, tile, (0, 0))
    to, at = cpasync.tma_partition(
        gather,
        block,
        cute.make_layout(blocks),
        cute.group_modes(here, 0, 2),
        cute.group_modes(whole, 0, 2),
    )
    cute.copy(gather, at, to, rows=numbers, tma_bar_ptr=barrier, mcast_mask=(1 << blocks) - 1)
    arch.mbarrier_wait(barrier, 0)
    for i in range(tile[0]):
        for j in range(t, tile[1], 32):
            y[block, i, j] = here[i, j]
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.jit
def rows_for_all(
    x: cute.Tensor,
    numbers: cute.Tensor,
    y: cute.Tensor,
    tile: cute.Constexpr,
    blocks: cute.Constexpr,
):
    small = tcgen05.make_smem_layout_atom(K.K_SW128, x.element_type)
    layout = cute.tile_to_shape(small, tile, (0, 1))
    op = cpasync.CopyBulkTensorTileGather4G2SMulticastOp()
    atom, source = cpasync.make_tiled_tma_atom(op, x, layout, tile, num_multicast=blocks)
    gather_for_all(atom, source, numbers, y, tile, layout, blocks).launch(
        grid=blocks, block=32, cluster=(blocks, 1, 1)
    )


def multicast_arguments(tile, blocks, columns=128):
    rng = np.random.default_rng(tile[0])
    x = rng.integers(-100, 100, (30, columns)).astype(np.float16)
    numbers = rng.integers(-3, 34, tile[0], np.int32)
    y = np.full((blocks, *tile), -1, np.float16)
    return x, numbers, y


@pytest.mark.parametrize(("tile", "blocks"), [((8, 64), 2), ((16, 128), 4)])
def test_a_multicast_gathers_a_part_of_the_rows_for_all(sim, tile, blocks):
    x, numbers, y = multicast_arguments(tile, blocks)
    rows_for_all(*(from_dlpack(a, assumed_align=16) for a in (x, numbers, y)), tile, blocks)
    cute.synchronize()
    inside = (numbers >= 0) & (numbers < len(x))
    wanted = np.where(inside[:, None], x[numbers % len(x), : tile[1]], 0)
    np.testing.assert_array_equal(y, np.broadcast_to(wanted, y.shape))


def test_a_multicast_needs_four_rows_of_each_block(sim):
    x, numbers, y = multicast_arguments((8, 64), 4)
    tensors = [from_dlpack(a, assumed_align=16) for a in (x, numbers, y)]
    with pytest.raises(DSLTypeError, match="8 rows cannot be gathered in fours by 4 blocks"):
        rows_for_all(*tensors, (8, 64), 4)


def test_ptx_of_a_multicast():
    tensors = [from_dlpack(a, assumed_align=16) for a in multicast_arguments((16, 128), 2)]

    def compiled(target):
        return cute.compile(rows_for_all, *tensors, (16, 128), 2, options=f"--arch {target}")

    for target in ("sm_100a", "sm_103a"):
        text = compiled(target).stages.text("ptx")
        name = "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier"
        # Two boxes of 64 columns, of each 8 rows of the block's own.
        assert text.count(name) == text.count(".multicast::cluster") == 4
        if ptxas.find_ptxas() is not None:
            assert ptxas.start(text, target).finish().cubin
    with pytest.raises(DSLTypeError, match=r"sm_120a has no .*gather4 into other blocks: only the"):
        compiled("sm_120a")


def run(sources, targets, tile=(4, 64), swizzle="none"):
    x, y = np.ones((8, 64), np.float16), np.zeros((8, 64), np.float16)
    numbers = [np.array(rows) for rows in (sources, targets)]
    tensors = [from_dlpack(a, assumed_align=16) for a in (x, y, *numbers)]
    permute(*tensors, tile, swizzle)
    cute.synchronize()


def test_a_scatter_has_each_row_once_and_none_before_the_matrix(sim):
    four = np.arange(4, dtype=np.int32)
    with pytest.raises(SimulationError, match=r"writes a row of the tensor twice: rows \(1, 2, 1,"):
        run(four, np.array([1, 2, 1, 9], np.int32))
    run(four, np.array([9, 2, 9, 1], np.int32))  # those beyond are not written
    with pytest.raises(SimulationError, match=r"a TMA store begins at \(0, 1, -1, 2, 3\)"):
        run(four, np.array([1, -1, 2, 3], np.int32))


def test_wrong_rows_and_tiles(sim):
    four = np.arange(4, dtype=np.int32)
    with pytest.raises(DSLTypeError, match="rows= has 8 numbers, for a tile of 4 rows"):
        run(np.arange(8, dtype=np.int32), four)
    with pytest.raises(DSLTypeError, match="rows= has numbers of Int64, not Int32"):
        run(four.astype(np.int64), four)
    with pytest.raises(DSLTypeError, match="gathered by 4, and the shared layout has 6"):
        run(np.arange(6, dtype=np.int32), np.arange(6, dtype=np.int32), (6, 64))
    with pytest.raises(DSLTypeError, match=r"box of \(8, 4\) elements has 64 bytes, no multiple"):
        run(np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32), (8, 8))
