"""A convolution by im2col TMA and tcgen05.mma, against float64; its PTX by ptxas."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch, pipeline, utils
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.utils import sm100
from tests.cute.hopper.test_im2col import pixels

ROWS, CHANNELS = 128, 64


@cute.kernel
def multiply(
    mma: cute.TiledMma,
    a_atom,
    a: cute.Tensor,
    b_atom,
    b: cute.Tensor,
    y: cute.Tensor,
    layouts: cute.Constexpr,
):
    """A tile of positions by all filters; one buffer, which one warp fills and multiplies."""
    t, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = utils.SmemAllocator()
    full, done = (smem.allocate_array(cute.Int64, 1) for _ in range(2))
    holder = smem.allocate_array(cute.Int32, 1)
    dtype = a_atom.value_type
    sa, sb = (smem.allocate_tensor(dtype, x.outer, 1024, x.inner) for x in layouts)
    n = mma.shape_mnk[1]
    tmem = utils.TmemAllocator(holder, barrier_for_retrieve=pipeline.NamedBarrier(1, ROWS))
    if warp == 0:
        with arch.elect_one():
            arch.mbarrier_init(full, 1)
            arch.mbarrier_init(done, 1)
            arch.mbarrier_init_fence()
    tmem.allocate(64)
    tmem.wait_for_alloc()
    start = tmem.retrieve_ptr(cute.Float32)
    acc = cute.make_tensor(start, mma.make_fragment_C(mma.partition_shape_C((ROWS, n))).layout)
    ra, rb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
    ga = mma.get_slice(0).partition_A(cute.local_tile(a, (ROWS, CHANNELS), (block, None)))
    gb = mma.get_slice(0).partition_B(cute.local_tile(b, (n, CHANNELS), (0, None)))
    parts = [
        cpasync.tma_partition(
            atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 3), cute.group_modes(g, 0, 3)
        )
        for atom, s, g in ((a_atom, sa, ga), (b_atom, sb, gb))
    ]
    arch.sync_threads()
    steps = cute.size(ga, mode=[3])
    if warp == 0:
        phase = cute.Int32(0)
        for k in cute.range(steps):
            if k > 0:
                arch.mbarrier_wait(done, phase ^ 1)
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(full, (ROWS + n) * CHANNELS * dtype.width // 8)
            for atom, (to, source) in zip((a_atom, b_atom), parts, strict=True):
                cute.copy(atom, source[None, k], to[None, 0], tma_bar_ptr=full)
            arch.mbarrier_wait(full, phase)
            for i in cute.range_constexpr(cute.size(ra, mode=[2])):
                at = (None, None, i, 0)
                cute.gemm(mma, acc, ra[at], rb[at], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            tcgen05.commit(done)
            phase ^= 1
    arch.mbarrier_wait(done, (steps - 1) & 1)
    arch.tcgen05_after_thread_sync()
    tile = cute.make_tensor(start, cute.make_layout((ROWS, n), stride=(65536, 1)))
    load = tcgen05.make_tmem_copy(
        cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(n)), cute.Float32), tile
    )
    own = load.get_slice(t)
    values = cute.make_rmem_tensor(own.partition_D(tile).shape, cute.Float32)
    cute.copy(load, own.partition_S(tile), values)
    arch.fence_view_async_tmem_load()
    flat = cute.make_tensor(values.iterator, cute.make_layout(n))
    if block * ROWS + t < cute.size(y, mode=[0]):
        for i in cute.range_constexpr(n):
            y[block * ROWS + t, i] = flat[i]
    arch.sync_threads()
    tmem.relinquish_alloc_permit()
    tmem.free(start)


@cute.jit
def convolve(
    x: cute.Tensor,
    w: cute.Tensor,
    y: cute.Tensor,
    padding: cute.Constexpr,
    stride: cute.Constexpr,
):
    """x (N, H, W, C), w (K, R, S, C), y (positions, K)."""
    n, r, s, c = w.shape
    k = OperandMajorMode.K
    mma = sm100.make_trivial_tiled_mma(
        x.element_type, k, k, cute.Float32, tcgen05.CtaGroup.ONE, (ROWS, n)
    )
    shape = (ROWS, n, CHANNELS)
    layouts = (
        sm100.make_smem_layout_a(mma, shape, x.element_type, 1),
        sm100.make_smem_layout_b(mma, shape, x.element_type, 1),
    )
    # The same bytes as the operand of the product has, in the order of the tile.
    small = tcgen05.make_smem_layout_atom("K_SW128", x.element_type)
    a_atom, a = cpasync.make_im2col_tma_atom(
        cpasync.CopyBulkTensorIm2ColG2SOp(),
        x,
        cute.tile_to_shape(small, (ROWS, CHANNELS), (0, 1)),
        (ROWS, CHANNELS),
        (r, s),
        padding=padding,
        stride=stride,
    )
    strides = w.stride[0], (w.stride[3], w.stride[2], w.stride[1])
    filters = cute.make_tensor(w.iterator, cute.make_layout((n, (c, s, r)), stride=strides))
    b_atom, b = cute.nvgpu.make_tiled_tma_atom_B(
        cpasync.CopyBulkTensorTileG2SOp(),
        filters,
        cute.slice_(layouts[1], (None, None, None, 0)),
        shape,
        mma,
    )
    multiply(mma, a_atom, a, b_atom, b, y, layouts).launch(
        grid=cute.ceil_div(y.shape[0], ROWS), block=ROWS
    )


def operands(stride=2):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 13, 11, 64)).astype(np.float16)
    w = rng.standard_normal((32, 3, 3, 64)).astype(np.float16)
    places = pixels(x, (3, 3), (1, 1), (stride, stride), (1, 1)).astype(np.float64)
    places = places.reshape(len(places), -1)
    y = np.full((len(places), 32), np.nan, np.float32)
    return x, w, y, places @ w.reshape(32, -1).T.astype(np.float64)


@pytest.mark.parametrize("stride", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_a_convolution(sim, stride):
    x, w, y, wanted = operands(stride)
    convolve(*(from_dlpack(t, assumed_align=16) for t in (x, w, y)), 1, stride)
    cute.synchronize()
    np.testing.assert_allclose(y, wanted, atol=1e-3, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_ptxas_takes_it(target):
    tensors = [from_dlpack(t, assumed_align=16) for t in operands()[:3]]
    compiled = cute.compile(convolve, *tensors, 1, 2, options=f"--arch {target}")
    text = compiled.stages.text("ptx")
    assert ".im2col." in text and "tcgen05.mma.cta_group::1.kind::f16" in text
    kernel = ptxas.start(text, target).finish()
    assert kernel.cubin
