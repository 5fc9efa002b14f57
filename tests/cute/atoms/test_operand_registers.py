"""Fragments whose registers an instruction wants in another order, and views carried by a loop."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl_cute.nvgpu import warp


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """One warp, (16, 16) by (16, 16): both halves of B by one ldmatrix, which interleaves them."""
    lane = cute.arch.thread_idx()[0]
    mma = cute.make_tiled_mma(
        warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), permutation_mnk=(16, 16, 16)
    )
    thread = mma.get_slice(lane)
    smem = cute.utils.SmemAllocator()
    # Three stages; the loop below finds the last.
    layout = cute.tile_to_shape(
        cute.make_composed_layout(
            cute.make_swizzle(1, 3, 3), 0, cute.make_layout((8, 16), stride=(16, 1))
        ),
        (16, 16, 3),
        (0, 1, 2),
    )
    stages = smem.allocate_tensor(cute.Float16, layout, 16)
    for stage in cute.range_constexpr(3):
        for i in cute.range_constexpr(8):
            at = (lane // 2, lane % 2 * 8 + i)
            stages[at[0], at[1], stage] = b[at] if stage == 2 else cute.Float16(7.0)
    cute.arch.sync_warp()
    load = cute.make_tiled_copy_B(
        cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16), mma
    )
    view = load.get_slice(lane).partition_S(stages)
    now = view[None, None, None, 0]
    for stage in range(3):
        now = view[None, None, None, stage]
    # Registers of B in an order that no instruction has: value 0 and 1 are eight apart.
    piece = mma.make_fragment_B(thread.partition_B(stages)[None, None, None, 0])
    apart = cute.make_tensor(
        cute.make_rmem_tensor(16, cute.Float16).iterator,
        cute.make_layout(piece.shape, stride=((8, 1), 2, 4)),
    )
    cute.copy(load, now, load.get_slice(lane).retile(apart))
    fragment_a = mma.make_fragment_A(thread.partition_A(a))
    cute.autovec_copy(thread.partition_A(a), fragment_a)
    sums = mma.make_fragment_C(thread.partition_C(c))
    sums.fill(0.0)
    cute.gemm(mma, sums, fragment_a, apart, sums)
    cute.autovec_copy(sums, thread.partition_C(c))


@cute.jit
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    product_kernel(a, b, c).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_registers_in_another_order_and_a_view_that_a_loop_moves(target):
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (16, 16)).astype(np.float16)
    b = rng.integers(-3, 4, (16, 16)).astype(np.float16)
    c = np.zeros((16, 16), np.float32)
    product(*(cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b, c)))
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("coordinate 8 is out of range for an extent of 8, in registers of shape", lambda r: r[8]),
        ("coordinate -1 is negative", lambda r: r[0, -1]),
        (
            "coordinate 2 is out of range for an extent of 2, in registers of shape",
            lambda r: r[None, 2],
        ),
        (
            "coordinate 2 is out of range for an extent of 2, in registers of shape",
            lambda r: r[(0, 2), 0],
        ),
    ],
)
def test_known_coordinates_lie_in_the_registers(sim, text, wrong):
    @cute.kernel
    def kernel():
        held = cute.make_rmem_tensor(((2, 2), 2), cute.Float32)
        held.fill(0.0)
        wrong(held)

    @cute.jit
    def host():
        kernel().launch(grid=1, block=32)

    with pytest.raises(DSLTypeError, match=text):
        cute.compile(host)


@pytest.mark.parametrize(
    ("hint", "wrong"),
    [
        ("x.load() is the vector of its elements", lambda r: r * 2.0),
        ("x.load() is the vector of its elements", lambda r: 2.0 - r),
        ("x.load() is the vector of its elements", lambda r: r.load() + r),
        ("x.load() is the vector of its elements", lambda r: -r),
        ("x.load() is the vector of its elements", lambda r: r > 0.0),
        ("x.load().to(...)", lambda r: r.to(cute.Float16)),
        ("x.load().reduce(...)", lambda r: r.reduce(cute.ReductionOp.ADD, 0.0, 0)),
    ],
)
def test_a_tensor_is_no_vector(sim, hint, wrong):
    @cute.kernel
    def kernel():
        wrong(cute.make_rmem_tensor(4, cute.Float32))

    @cute.jit
    def host():
        kernel().launch(grid=1, block=32)

    with pytest.raises(DSLError, match=re.escape(hint)):
        cute.compile(host)


def test_a_kernel_with_its_arguments_is_launched(sim):
    @cute.kernel
    def kernel():
        pass

    @cute.jit
    def host():
        kernel()(grid=1, block=32)

    with pytest.raises(DSLError, match=r"kernel\(...\) already has its arguments: launch it"):
        cute.compile(host)
