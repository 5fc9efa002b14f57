"""G = X X^T: one tensor is both operands. Blocks compute tiles of the lower triangle and write each
twice, the second time transposed by stmatrix.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float16, Float32, Int32
from basedsl_cute.nvgpu import cpasync, warp
from basedsl_cute.runtime import from_dlpack

T = 32


@cute.kernel
def syrk_kernel(
    x: cute.Tensor,
    g: cute.Tensor,
    tiles: Int32,
    sx: cute.ComposedLayout,
    sg: cute.ComposedLayout,
    mma: cute.TiledMma,
    cp: cute.TiledCopy,
):
    tid, _, _ = cute.arch.thread_idx()
    bid, _, _ = cute.arch.block_idx()
    # triangular unranking
    i = Int32((cute.math.sqrt(Float32(8 * bid + 1)) - 1.0) * 0.5)
    while (i + 1) * (i + 2) // 2 <= bid:
        i += 1
    while i * (i + 1) // 2 > bid:
        i -= 1
    j = bid - i * (i + 1) // 2
    K = x.shape[1]
    smem = cute.utils.SmemAllocator()
    sA = smem.allocate_tensor(element_type=Float16, layout=sx, byte_alignment=128)
    sB = smem.allocate_tensor(element_type=Float16, layout=sx, byte_alignment=128)
    sG = smem.allocate_tensor(Float16, sg, 128)
    gx = cute.local_tile(x, (T, T), (None, None))
    cx = cute.local_tile(cute.make_identity_tensor(x.shape), (T, T), (None, None))
    thr = cp.get_slice(tid)
    ta, tca, tsa = (
        thr.partition_S(gx[None, None, i, None]),
        thr.partition_S(cx[None, None, i, None]),
        thr.partition_D(sA),
    )
    tb, tcb, tsb = (
        thr.partition_S(gx[None, None, j, None]),
        thr.partition_S(cx[None, None, j, None]),
        thr.partition_D(sB),
    )
    acc = cute.make_rmem_tensor(mma.partition_shape_C((T, T)), Float32)
    acc.fill(0)
    rA = mma.make_fragment_A(mma.partition_shape_A((T, T)))
    rB = mma.make_fragment_B(mma.partition_shape_B((T, T)))
    ld = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), Float16)
    la, lb = cute.make_tiled_copy_A(ld, mma), cute.make_tiled_copy_B(ld, mma)
    same = i == j
    for k in cutlass.range(cute.ceil_div(K, T)):
        cute.arch.sync_threads()
        p = cute.make_rmem_tensor_like(cute.make_layout(tsa.shape[1:]), cutlass.Boolean)
        for m in range(cute.size(tsa, mode=[1])):
            p[m, 0] = cute.elem_less(tca[0, m, 0, k], x.shape)
        cute.copy(
            cp,
            ta[None, None, None, k],
            tsa,
            pred=cute.make_tensor(p.iterator, cute.prepend(p.layout, cute.make_layout(1))),
        )
        if not same:
            for m in range(cute.size(tsb, mode=[1])):
                p[m, 0] = cute.elem_less(tcb[0, m, 0, k], x.shape)
            cute.copy(
                cp,
                tb[None, None, None, k],
                tsb,
                pred=cute.make_tensor(p.iterator, cute.prepend(p.layout, cute.make_layout(1))),
            )
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        src = lb.get_slice(tid).partition_S(sA)
        other = lb.get_slice(tid).partition_S(sB)
        cute.copy(la, la.get_slice(tid).partition_S(sA), la.retile(rA))
        if same:
            cute.copy(lb, src, lb.retile(rB))
        else:
            cute.copy(lb, other, lb.retile(rB))
        for kk in cutlass.range_constexpr(cute.size(rA, mode=[2])):
            cute.gemm(mma, acc, rA[None, None, kk], rB[None, None, kk], acc)
    out = cute.make_fragment_like(acc, Float16)
    out.store(acc.load().to(Float16))
    n = x.shape[0]
    for turn in cutlass.range_constexpr(2):
        st = cute.make_copy_atom(
            warp.StMatrix8x8x16bOp(transpose=bool(turn), num_matrices=4), Float16
        )
        view = sG if turn == 0 else cute.composition(sG, cute.make_layout((T, T), stride=(T, 1)))
        stc = cute.make_tiled_copy_C(st, mma)
        cute.arch.sync_threads()
        cute.copy(stc, stc.retile(out), stc.get_slice(tid).partition_D(view))
        cute.arch.sync_threads()
        row, col = (i, j) if turn == 0 else (j, i)
        gt = cute.local_tile(g, (T, T), (row, col))
        if turn == 0 or not same:
            for e in range(tid, T * T, 128):
                r, c = e // T, e % T
                if row * T + r < n and col * T + c < n:
                    gt[r, c] = sG[r, c]


@cute.jit
def syrk(x: cute.Tensor, g: cute.Tensor):
    n = x.shape[0]
    tiles = cute.ceil_div(n, T)
    atom = cute.make_composed_layout(
        cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1))
    )
    sx = cute.tile_to_shape(atom, (T, T), (0, 1))
    mma = cute.make_tiled_mma(
        warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)), (2, 2, 1), permutation_mnk=(32, 32, 16)
    )
    cp = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cpasync.CopyG2SOp(zero_fill=True), Float16, num_bits_per_copy=128),
        cute.make_layout((32, 4), stride=(4, 1)),
        cute.make_layout((1, 8)),
    )
    syrk_kernel(x, g, tiles, sx, sx, mma, cp).launch(
        grid=(tiles * (tiles + 1) // 2, 1, 1), block=(128, 1, 1)
    )


def run():
    check(75, 72)
    check(32, 8)
    check(130, 40)


def check(n, k):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (n, k)).astype(np.float16)
    g = np.full((n, n), np.nan, np.float16)
    tx = (
        from_dlpack(x, assumed_align=16)
        .mark_compact_shape_dynamic(0, (0, 1))
        .mark_compact_shape_dynamic(1, (0, 1), divisibility=8)
    )
    syrk(tx, from_dlpack(g).mark_layout_dynamic())
    np.testing.assert_array_equal(g, x.astype(float) @ x.T.astype(float))
