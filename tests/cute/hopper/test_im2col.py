"""TMA copies of pixels, im2col, against NumPy: any filter, padding, stride; a convolution."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl.testing import slow_but
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim.errors import SimulationError

from .im2col_convolution import convolve

LOAD = cpasync.CopyBulkTensorIm2ColG2SOp()
STORE = cpasync.CopyBulkTensorIm2ColS2GOp()


def pixels(x, filter_shape, padding, stride, dilation):
    """The matrix (positions, R, S, C) that a convolution of images multiplies, from its meaning."""
    spatial = x.ndim - 2
    pads = [(p, p) if isinstance(p, int) else p for p in padding]
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    counts = [
        (size - d * (n - 1) - 1) // step + 1
        for size, n, step, d in zip(padded.shape[1:-1], filter_shape, stride, dilation, strict=True)
    ]
    found = np.zeros((len(x), *counts, *filter_shape, x.shape[-1]), x.dtype)
    for place in np.ndindex(*filter_shape):
        at = [
            slice(i * d, i * d + step * (count - 1) + 1, step)
            for i, d, step, count in zip(place, dilation, stride, counts, strict=True)
        ]
        found[(slice(None),) * (1 + spatial) + place] = padded[(slice(None), *at)]
    return found.reshape(-1, *filter_shape, x.shape[-1])


@cute.kernel
def gather_pixels(
    atom, a: cute.Tensor, y: cute.Tensor, tile: cute.Constexpr, layout: cute.Constexpr
):
    """All tiles of this block's positions, one behind the other."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    is_plain = not isinstance(layout, cute.ComposedLayout)
    here = smem.allocate_tensor(
        atom.value_type,
        layout if is_plain else layout.outer,
        1024,
        None if is_plain else layout.inner,
    )
    thread, _, _ = arch.thread_idx()
    if thread == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    block, _, _ = arch.block_idx()
    tiles = cute.local_tile(a, tile, (block, None))
    to, at = cpasync.tma_partition(
        atom,
        smem_tensor=cute.group_modes(here, 0, 2),
        gmem_tensor=cute.group_modes(tiles, 0, 2),
    )
    cpasync.prefetch_descriptor(atom)
    cute.prefetch(atom, at[None, 0])
    phase = cute.Int32(0)
    for k in cute.range(cute.size(tiles, mode=[2])):
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(atom.value_type, layout))
        cute.copy(atom, at[None, k], to, tma_bar_ptr=barrier)
        arch.mbarrier_wait(barrier, phase)
        for i in range(tile[0]):
            if block * tile[0] + i < cute.size(y, mode=[0]):
                for j in range(thread, tile[1], 32):
                    y[block * tile[0] + i, k * tile[1] + j] = here[i, j]
        arch.sync_threads()
        arch.fence_proxy("async.shared", space="cta")
        phase ^= 1


@cute.jit
def gather(
    x: cute.Tensor,
    y: cute.Tensor,
    tile: cute.Constexpr,
    filter_shape: cute.Constexpr,
    padding: cute.Constexpr,
    stride: cute.Constexpr,
    dilation: cute.Constexpr,
    swizzle: cute.Constexpr = None,
):
    layout = cute.make_ordered_layout(tile, order=(1, 0))
    if cute.const_expr(swizzle is not None):
        small = cute.nvgpu.warpgroup.make_smem_layout_atom(swizzle, x.element_type)
        layout = cute.tile_to_shape(small, tile, (0, 1))
    atom, a = cpasync.make_im2col_tma_atom(
        LOAD, x, layout, tile, filter_shape, padding=padding, stride=stride, dilation=dilation
    )
    grid = cute.ceil_div(cute.size(a, mode=[0]), tile[0])
    gather_pixels(atom, a, y, tile, layout).launch(grid=grid, block=32)


def check(x, tile, filter_shape, padding, stride, dilation, swizzle=None, dynamic=False):
    """Each column of the result is (r, s, c), the channels fastest, as c, s, r are in a tile."""
    wanted = pixels(x, filter_shape, padding, stride, dilation)
    wanted = wanted.reshape(len(wanted), -1)
    y = np.full_like(wanted, 9)
    source = from_dlpack(x, assumed_align=16)
    if dynamic:
        for mode in range(x.ndim - 1):
            source = source.mark_compact_shape_dynamic(mode, tuple(range(x.ndim)))
    gather(source, from_dlpack(y), tile, filter_shape, padding, stride, dilation, swizzle)
    cute.synchronize()
    np.testing.assert_array_equal(y, wanted)


def images(shape, dtype=np.float16, seed=0):
    return np.random.default_rng(seed).integers(1, 100, shape).astype(dtype)


CASES = {
    "3x3 padded": ((2, 5, 7, 16), (32, 16), (3, 3), (1, 1), (1, 1), (1, 1), None),
    "strides": ((3, 9, 8, 64), (16, 64), (3, 2), ((1, 0), (2, 1)), (2, 3), (1, 1), "K_SW128"),
    "dilated": ((1, 11, 9, 32), (8, 32), (3, 3), (2, 0), (1, 2), (2, 3), "K_SW64"),
    "half of the channels": ((2, 4, 4, 32), (16, 16), (1, 2), (0, 1), (1, 1), (1, 1), "K_SW32"),
    "one mode": ((2, 21, 8), (16, 8), (5,), (2,), (3,), (1,), None),
    "three modes": ((2, 3, 4, 5, 8), (16, 8), (2, 3, 2), (1, 1, 0), (1, 2, 1), (1, 1, 2), None),
}


QUICK = "3x3 padded"


@pytest.mark.parametrize("name", slow_but(CASES, QUICK))
def test_pixels_of_any_filter(hopper, name):
    shape, *rest = CASES[name]
    check(images(shape), *rest)


@pytest.mark.slow
def test_extents_of_run_time(hopper):
    shape, *rest = CASES[QUICK]
    check(images(shape), *rest, dynamic=True)


def random_case(seed):
    rng = np.random.default_rng(seed)
    spatial = int(rng.integers(1, 4))

    def draw(low, high):
        return tuple(int(n) for n in rng.integers(low, high, spatial))

    filter_shape, dilation, stride = draw(1, 4), draw(1, 3), draw(1, 4)
    padding = tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (spatial, 2)))
    sizes = [
        max(1, d * (n - 1) + 1 - a - b) + int(rng.integers(0, 9))
        for d, n, (a, b) in zip(dilation, filter_shape, padding, strict=True)
    ]
    channels = 8 * int(rng.choice([1, 2, 4, 8]))
    dtype = rng.choice([np.float16, np.float32])
    x = images((int(rng.integers(1, 4)), *sizes, channels), dtype, seed)
    tile = (8 * int(rng.integers(1, 5)), int(rng.choice([channels, max(8, channels // 2)])))
    return x, tile, filter_shape, padding, stride, dilation


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.slow
def test_random_filters(hopper, seed):
    check(*random_case(seed), dynamic=bool(seed % 2))


@pytest.mark.parametrize(
    ("shape", "filters", "padding", "stride", "dilation"),
    [
        ((2, 7, 6, 32), (32, 3, 3), 1, 1, 1),
        pytest.param((1, 9, 11, 64), (64, 3, 2), 1, 2, 1, marks=pytest.mark.slow),
        pytest.param((3, 8, 8, 32), (16, 3, 3), 2, 1, 2, marks=pytest.mark.slow),
    ],
)
def test_a_convolution(hopper, shape, filters, padding, stride, dilation):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(np.float16)
    w = rng.standard_normal((*filters, shape[-1])).astype(np.float16)
    places = pixels(x, filters[1:], (padding,) * 2, (stride,) * 2, (dilation,) * 2)
    wanted = places.reshape(len(places), -1).astype(np.float64) @ w.reshape(len(w), -1).T.astype(
        np.float64
    )
    p, q = (
        (n + 2 * padding - dilation * (f - 1) - 1) // stride + 1
        for n, f in zip(shape[1:3], filters[1:], strict=True)
    )
    y = np.full((shape[0], p, q, filters[0]), np.nan, np.float32)
    tensors = [from_dlpack(t, assumed_align=16) for t in (x, w, y)]
    convolve(*tensors, padding, stride, dilation)
    cute.synchronize()
    np.testing.assert_allclose(y.reshape(wanted.shape), wanted, atol=1e-3, rtol=1e-3)


@cute.kernel
def put_pixels(atom, a: cute.Tensor, y: cute.Tensor, tile: cute.Constexpr):
    smem = cute.utils.SmemAllocator()
    here = smem.allocate_tensor(y.element_type, cute.make_ordered_layout(tile, order=(1, 0)), 128)
    thread, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    for i in range(tile[0]):
        for j in range(thread, tile[1], 32):
            number = (block * tile[0] + i) * tile[1] + j
            here[i, j] = number.to(y.element_type)
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    source, to = cpasync.tma_partition(
        atom,
        smem_tensor=cute.group_modes(here, 0, 2),
        gmem_tensor=cute.group_modes(cute.local_tile(a, tile, (block, 0)), 0, 2),
    )
    cute.copy(atom, source, to)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


@cute.jit
def number_pixels(y: cute.Tensor, tile: cute.Constexpr, stride: cute.Constexpr):
    layout = cute.make_ordered_layout(tile, order=(1, 0))
    atom, a = cpasync.make_im2col_tma_atom(STORE, y, layout, tile, (1, 1), stride=stride)
    grid = cute.ceil_div(cute.size(a, mode=[0]), tile[0])
    put_pixels(atom, a, y, tile).launch(grid=grid, block=32)


@pytest.mark.parametrize("stride", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_pixels_are_stored(hopper, stride):
    """Every second pixel with a stride of 2; those beyond the last image are not written."""
    y = np.full((2, 5, 3, 16), -1, np.float32)
    number_pixels(from_dlpack(y, assumed_align=16), (8, 16), stride)
    cute.synchronize()
    wanted = np.full_like(y, -1)
    part = wanted[:, ::stride, ::stride]
    part[:] = np.arange(part.size, dtype=np.float32).reshape(part.shape)
    np.testing.assert_array_equal(y, wanted)


@cute.kernel
def gather_for_all(atom, a: cute.Tensor, y: cute.Tensor, tile: cute.Constexpr):
    """Each block of the cluster loads a part of the positions for all."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    layout = cute.make_ordered_layout(tile, order=(1, 0))
    here = smem.allocate_tensor(y.element_type, layout, 128)
    thread, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    if thread == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    with arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(y.element_type, layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    to, at = cpasync.tma_partition(
        atom,
        block,
        cute.make_layout(2),
        cute.group_modes(here, 0, 2),
        cute.group_modes(cute.local_tile(a, tile, (0, 1)), 0, 2),
    )
    cute.copy(atom, at, to, tma_bar_ptr=barrier, mcast_mask=3)
    arch.mbarrier_wait(barrier, 0)
    for i in range(tile[0]):
        for j in range(thread, tile[1], 32):
            y[block, i, j] = here[i, j]
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.jit
def share(x: cute.Tensor, y: cute.Tensor, tile: cute.Constexpr):
    op = cpasync.CopyBulkTensorIm2ColG2SMulticastOp()
    layout = cute.make_ordered_layout(tile, order=(1, 0))
    atom, a = cpasync.make_im2col_tma_atom(op, x, layout, tile, (2, 2), padding=1, num_multicast=2)
    gather_for_all(atom, a, y, tile).launch(grid=2, block=32, cluster=(2, 1, 1))


def test_blocks_load_parts_for_all(hopper):
    x = images((1, 6, 5, 16))
    y = np.zeros((2, 16, 16), np.float16)
    share(from_dlpack(x, assumed_align=16), from_dlpack(y), (16, 16))
    cute.synchronize()
    wanted = pixels(x, (2, 2), (1, 1), (1, 1), (1, 1))[:16, 0, 1]
    np.testing.assert_array_equal(y, np.broadcast_to(wanted, y.shape))


@pytest.mark.parametrize("target", slow_but(("sm_90a", "sm_100a", "sm_120a"), "sm_90a"))
def test_ptx(target):
    shape, *rest = CASES[QUICK]
    x = images(shape)
    tensors = [from_dlpack(t, assumed_align=16) for t in (x, np.zeros((70, 144), np.float16))]
    compiled = cute.compile(gather, *tensors, *rest, options=f"--arch {target}")
    text = compiled.stages.text("ptx")
    assert ".4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes" in text
    assert "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col" in text
    if ptxas.find_ptxas() is not None:
        assert ptxas.start(text, target).finish().cubin


def test_what_there_is_not(sim):
    x = from_dlpack(images((2, 5, 7, 16)), assumed_align=16)
    y = from_dlpack(np.zeros((70, 144), np.float16))

    def refused(match, error=DSLTypeError, x=x, tile=(32, 16), filter_shape=(3, 3), padding=1,
                stride=1, dilation=1):  # fmt: skip
        with pytest.raises(error, match=match):
            gather(x, y, tile, filter_shape, padding, stride, dilation)

    refused("filter_shape= is 2 extents of a filter, not", filter_shape=(3,))
    refused(r"padding= is a number, or 2 numbers or pairs, none negative", padding=-1)
    refused("stride of pixels is 1 to 8, not", stride=9)
    refused("beyond -128 to 127\n(.|\n)*so it is with 2 spatial modes", padding=200)
    refused("channels of several places in the filter", tile=(32, 32))
    refused("filter is larger than the image", error=DSLError, filter_shape=(9, 3), padding=0)
    refused("contiguous channels", x=from_dlpack(np.zeros((4, 4), np.float16)))

    @cute.jit
    def tiled(x: cute.Tensor):
        cpasync.make_tiled_tma_atom(LOAD, x, cute.make_layout((8, 8)), (8, 8))

    with pytest.raises(DSLTypeError, match="copies pixels") as error:
        tiled(x)
    assert "make_im2col_tma_atom" in error.value.hint


@cute.kernel
def from_between(atom, tile: cute.Constexpr):
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    here = smem.allocate_array(cute.Float16, 128, byte_alignment=128)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
        arch.tma.tma_load(
            atom.tensor_map, here, barrier, tile, mode=arch.tma.IM2COL, offsets=(0, 0)
        )


@pytest.mark.parametrize("first", [(0, 0, -1, 0), (0, 9, -1, 0)])
def test_a_copy_begins_at_a_position_of_the_filter(sim, first):
    @cute.jit
    def host(x: cute.Tensor):
        layout = cute.make_ordered_layout((8, 16), order=(1, 0))
        atom, _ = cpasync.make_im2col_tma_atom(
            LOAD, x, layout, (8, 16), (3, 3), padding=1, stride=2
        )
        from_between(atom, first).launch(grid=1, block=32)

    with pytest.raises(SimulationError, match=r"begins at pixel .* is no position of the filter"):
        host(from_dlpack(images((2, 5, 7, 16)), assumed_align=16))
        cute.synchronize()
