"""Apply a Python function to tensors, element by element: thread-value layouts and predicates."""

import operator

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def elementwise_apply_kernel(
    op: cutlass.Constexpr,
    mInputs: list[cute.Tensor],
    mC: cute.Tensor,
    cC: cute.Tensor,
    shape: cute.Shape,
    tv_layout: cute.Layout,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()

    blk_crd = ((None, None), bidx)
    gInputs = [t[blk_crd] for t in mInputs]
    gC = mC[blk_crd]
    gCrd = cC[blk_crd]

    tidfrgInputs = [cute.composition(t, tv_layout) for t in gInputs]
    tidfrgC = cute.composition(gC, tv_layout)
    tidfrgCrd = cute.composition(gCrd, tv_layout)

    thr_crd = (tidx, cute.repeat_like(None, tidfrgInputs[0][1]))
    thrInputs = [t[thr_crd] for t in tidfrgInputs]
    thrC = tidfrgC[thr_crd]
    thrCrd = tidfrgCrd[thr_crd]

    frgPred = cute.make_rmem_tensor(thrCrd.shape, cutlass.Boolean)
    for i in cutlass.range(cute.size(frgPred), unroll=1):
        frgPred[i] = cute.elem_less(thrCrd[i], shape)

    result = op(*[thrInput.load() for thrInput in thrInputs])
    frgC = cute.make_fragment_like(thrC)
    frgC.store(result)
    for i in range(cute.size(frgPred)):
        if frgPred[i]:
            thrC[i] = frgC[i]


@cute.jit
def elementwise_apply(op: cutlass.Constexpr, inputs: list[cute.Tensor], result: cute.Tensor):
    coalesced_ldst_bytes = 16
    assert all(t.element_type == inputs[0].element_type for t in inputs)
    dtype = inputs[0].element_type

    thr_layout = cute.make_ordered_layout((4, 32), order=(1, 0))
    val_layout = cute.make_ordered_layout((4, coalesced_ldst_bytes), order=(1, 0))
    val_layout = cute.recast_layout(dtype.width, 8, val_layout)
    tiler_mn, tv_layout = cute.make_layout_tv(thr_layout, val_layout)

    mInputs = [cute.zipped_divide(input, tiler_mn) for input in inputs]
    mC = cute.zipped_divide(result, tiler_mn)

    idC = cute.make_identity_tensor(result.shape)
    cC = cute.zipped_divide(idC, tiler=tiler_mn)

    elementwise_apply_kernel(op, mInputs, mC, cC, result.shape, tv_layout).launch(
        grid=[cute.size(mC, mode=[1]), 1, 1],
        block=[cute.size(tv_layout, mode=[0]), 1, 1],
    )


def run():
    rng = np.random.default_rng(0)
    m, n = 32, 512
    a = rng.standard_normal((m, n)).astype(np.float32)
    b = rng.standard_normal((m, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    mA, mB, mC = (from_dlpack(x, assumed_align=16).mark_layout_dynamic() for x in (a, b, c))

    compiled = cute.compile(elementwise_apply, operator.add, [mA, mB], mC)
    compiled([mA, mB], mC)
    np.testing.assert_array_equal(c, a + b)

    elementwise_apply(lambda x, y: cute.where(x > y, x, y * 2.0), [mA, mB], mC)
    np.testing.assert_array_equal(c, np.where(a > b, a, b * np.float32(2)))

    elementwise_apply(lambda x: x, [mA], mC)
    np.testing.assert_array_equal(c, a)
