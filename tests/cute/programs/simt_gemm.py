"""C = op(alpha A B^T) by ordinary multiply-adds: copies by cp.async run ahead, and predicates make
any shape right. The first k tile is the partial one.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.utils as utils
from basedsl_cute.runtime import from_dlpack


class SimtGemm:
    def __init__(self, cta_tiler=(32, 32, 8), num_stages=3, num_threads=64, vector=2):
        self._cta_tiler = cta_tiler
        self._num_stages = num_stages
        self._num_threads = num_threads
        self._vector = vector
        assert num_threads % 16 == 0
        self._bM, self._bN, self._bK = self._cta_tiler
        self.cta_sync_barrier = cutlass.pipeline.NamedBarrier(barrier_id=1, num_threads=num_threads)

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        alpha: cutlass.Float32,
        epilogue_op: cutlass.Constexpr = lambda x: x,
    ):
        self.a_major_mode = utils.LayoutEnum.from_tensor(mA)
        self.b_major_mode = utils.LayoutEnum.from_tensor(mB)
        self.c_major_mode = utils.LayoutEnum.from_tensor(mC)
        padding_a = 4 if self.a_major_mode == utils.LayoutEnum.ROW_MAJOR else 0
        padding_b = 4 if self.b_major_mode == utils.LayoutEnum.ROW_MAJOR else 0
        sA_layout = cute.make_layout(
            (self._bM, self._bK, self._num_stages),
            stride=(1, self._bM + padding_a, self._bK * (self._bM + padding_a)),
        )
        sB_layout = cute.make_layout(
            (self._bN, self._bK, self._num_stages),
            stride=(1, self._bN + padding_b, self._bK * (self._bN + padding_b)),
        )
        tiled_copy_A = self.tiled_copy(mA, self.a_major_mode, self._bM)
        tiled_copy_B = self.tiled_copy(mB, self.b_major_mode, self._bN)

        across = 16 if self._num_threads >= 256 else 8
        along = self._num_threads // across
        atoms_layout = cute.make_layout((along, across, 1), stride=(across, 1, 0))
        if cutlass.const_expr(self.c_major_mode == utils.LayoutEnum.COL_MAJOR):
            atoms_layout = cute.make_layout((across, along, 1), stride=(1, across, 0))
        op = cute.nvgpu.MmaUniversalOp(cutlass.Float32)
        permutation_tiler_M = cute.make_layout(
            (atoms_layout.shape[0], self._vector), stride=(self._vector, 1)
        )
        permutation_tiler_N = cute.make_layout(
            (atoms_layout.shape[1], self._vector), stride=(self._vector, 1)
        )
        tiled_mma = cute.make_tiled_mma(
            op, atoms_layout, permutation_mnk=(permutation_tiler_M, permutation_tiler_N, None)
        )
        grid_dim = *cute.ceil_div(mC.shape, (self._bM, self._bN)), 1
        self.kernel(
            mA,
            mB,
            mC,
            alpha,
            sA_layout,
            sB_layout,
            tiled_copy_A,
            tiled_copy_B,
            tiled_mma,
            epilogue_op,
        ).launch(grid=grid_dim, block=[cute.size(atoms_layout), 1, 1])

    def tiled_copy(self, tensor, major, extent):
        """Return a copy by four elements along M or N where these are contiguous and aligned."""
        vector, threads = (
            1,
            cute.make_layout((self._num_threads // self._bK, self._bK), stride=(self._bK, 1)),
        )
        if major == utils.LayoutEnum.COL_MAJOR:
            vector = 4 if tensor.layout.max_alignment % 16 == 0 else 1
            threads = cute.make_layout(
                (extent // vector, self._num_threads // (extent // vector)),
                stride=(1, extent // vector),
            )
        width = tensor.element_type.width * vector
        atom = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(), tensor.element_type, num_bits_per_copy=width
        )
        return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((vector, 1)))

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        alpha: cutlass.Float32,
        sA_layout: cute.Layout,
        sB_layout: cute.Layout,
        tiled_copy_A: cute.TiledCopy,
        tiled_copy_B: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
        epilogue_op: cutlass.Constexpr = lambda x: x,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        tiler_coord = (bidx, bidy, None)
        thr_mma = tiled_mma.get_slice(tidx)
        gA = cute.local_tile(mA, tiler=self._cta_tiler, coord=tiler_coord, proj=(1, None, 1))
        gB = cute.local_tile(mB, tiler=self._cta_tiler, coord=tiler_coord, proj=(None, 1, 1))
        gC = cute.local_tile(mC, tiler=self._cta_tiler, coord=tiler_coord, proj=(1, 1, None))

        # Move the irregular k tile to the front
        residue_k = mA.shape[1] - cutlass.Int32(self._bK) * gA.shape[2]
        gA = cute.domain_offset((0, residue_k, 0), gA)
        gB = cute.domain_offset((0, residue_k, 0), gB)

        smem = cutlass.utils.SmemAllocator()
        sA = smem.allocate_tensor(mA.element_type, sA_layout, 16)
        sB = smem.allocate_tensor(mB.element_type, sB_layout, 16)
        thr_copy_A = tiled_copy_A.get_slice(tidx)
        thr_copy_B = tiled_copy_B.get_slice(tidx)
        tAgA = thr_copy_A.partition_S(gA)
        tAsA = thr_copy_A.partition_D(sA)
        tBgB = thr_copy_B.partition_S(gB)
        tBsB = thr_copy_B.partition_D(sB)

        mcA = cute.make_identity_tensor(mA.shape)
        mcB = cute.make_identity_tensor(mB.shape)
        cA = cute.local_tile(mcA, tiler=self._cta_tiler, coord=tiler_coord, proj=(1, None, 1))
        cB = cute.local_tile(mcB, tiler=self._cta_tiler, coord=tiler_coord, proj=(None, 1, 1))
        cA = cute.domain_offset((0, residue_k, 0), cA)
        cB = cute.domain_offset((0, residue_k, 0), cB)
        tAcA = thr_copy_A.partition_S(cA)
        tBcB = thr_copy_B.partition_S(cB)
        tApA = cute.make_rmem_tensor(
            cute.make_layout(
                (tAsA.shape[0][1], cute.size(tAsA, mode=[1]), cute.size(tAsA, mode=[2])),
                stride=(cute.size(tAsA, mode=[1]), 1, 0),
            ),
            cutlass.Boolean,
        )
        tBpB = cute.make_rmem_tensor(
            cute.make_layout(
                (tBsB.shape[0][1], cute.size(tBsB, mode=[1]), cute.size(tBsB, mode=[2])),
                stride=(cute.size(tBsB, mode=[1]), 1, 0),
            ),
            cutlass.Boolean,
        )
        tApA_residue_k = cute.make_rmem_tensor(
            cute.make_layout(
                (tAsA.shape[0][1], cute.size(tAsA, mode=[1]), cute.size(tAsA, mode=[2])),
                stride=(
                    cute.size(tAsA, mode=[1]) * cute.size(tAsA, mode=[2]),
                    cute.size(tAsA, mode=[2]),
                    1,
                ),
            ),
            cutlass.Boolean,
        )
        tBpB_residue_k = cute.make_rmem_tensor(
            cute.make_layout(
                (tBsB.shape[0][1], cute.size(tBsB, mode=[1]), cute.size(tBsB, mode=[2])),
                stride=(
                    cute.size(tBsB, mode=[1]) * cute.size(tBsB, mode=[2]),
                    cute.size(tBsB, mode=[2]),
                    1,
                ),
            ),
            cutlass.Boolean,
        )
        for rest_v in range(tApA.shape[0]):
            for m in range(tApA.shape[1]):
                tApA[rest_v, m, 0] = cute.elem_less(tAcA[(0, rest_v), m, 0, 0][0], mA.shape[0])
        for rest_v in range(tBpB.shape[0]):
            for n in range(tBpB.shape[1]):
                tBpB[rest_v, n, 0] = cute.elem_less(tBcB[(0, rest_v), n, 0, 0][0], mB.shape[0])
        for rest_v in range(tApA_residue_k.shape[0]):
            for m in range(tApA_residue_k.shape[1]):
                for k in range(tApA_residue_k.shape[2]):
                    coord_A = tAcA[(0, rest_v), m, k, 0]
                    tApA_residue_k[rest_v, m, k] = cute.elem_less(
                        (coord_A[0], cutlass.Int32(-1)), (mA.shape[0], coord_A[1])
                    )
        for rest_v in range(tBpB_residue_k.shape[0]):
            for n in range(tBpB_residue_k.shape[1]):
                for k in range(tBpB_residue_k.shape[2]):
                    coord_B = tBcB[(0, rest_v), n, k, 0]
                    tBpB_residue_k[rest_v, n, k] = cute.elem_less(
                        (coord_B[0], cutlass.Int32(-1)), (mB.shape[0], coord_B[1])
                    )

        # prologue
        tAsA.fill(0)
        tBsB.fill(0)
        cute.arch.sync_threads()
        k_pipe_max = cute.size(tAsA, mode=[3])
        k_tile_count = cute.size(tAgA, mode=[3])
        gmem_pipe_read = cutlass.Int32(0)
        cute.copy(
            tiled_copy_A,
            tAgA[None, None, None, gmem_pipe_read],
            tAsA[None, None, None, 0],
            pred=tApA_residue_k,
        )
        cute.copy(
            tiled_copy_B,
            tBgB[None, None, None, gmem_pipe_read],
            tBsB[None, None, None, 0],
            pred=tBpB_residue_k,
        )
        cute.arch.cp_async_commit_group()
        gmem_pipe_read = (
            gmem_pipe_read + 1 if gmem_pipe_read + 1 < k_tile_count else cutlass.Int32(0)
        )
        for k_tile in range(1, k_pipe_max - 1):
            if k_tile < k_tile_count:
                cute.copy(
                    tiled_copy_A,
                    tAgA[None, None, None, gmem_pipe_read],
                    tAsA[None, None, None, k_tile],
                    pred=tApA,
                )
                cute.copy(
                    tiled_copy_B,
                    tBgB[None, None, None, gmem_pipe_read],
                    tBsB[None, None, None, k_tile],
                    pred=tBpB,
                )
            gmem_pipe_read = (
                gmem_pipe_read + 1 if gmem_pipe_read + 1 < k_tile_count else cutlass.Int32(0)
            )
            cute.arch.cp_async_commit_group()
        if k_tile_count < k_pipe_max:
            for rest_v in range(tApA.shape[0]):
                for m in range(tApA.shape[1]):
                    tApA[rest_v, m, 0] = cutlass.Boolean(0)
            for rest_v in range(tBpB.shape[0]):
                for n in range(tBpB.shape[1]):
                    tBpB[rest_v, n, 0] = cutlass.Boolean(0)

        tCsA = thr_mma.partition_A(sA)
        tCsB = thr_mma.partition_B(sB)
        tCgC = thr_mma.partition_C(gC)
        tCrA = tiled_mma.make_fragment_A(tCsA[None, None, None, 0])
        tCrB = tiled_mma.make_fragment_B(tCsB[None, None, None, 0])
        tCrC = tiled_mma.make_fragment_C(tCgC)
        tCrC.fill(0.0)
        smem_pipe_read = cutlass.Int32(0)
        smem_pipe_write = cutlass.Int32(k_pipe_max - 1)
        tCsA_p = tCsA[None, None, None, smem_pipe_read]
        tCsB_p = tCsB[None, None, None, smem_pipe_read]
        k_block_max = cute.size(tCrA, mode=[2])
        if k_block_max > 1:
            cute.arch.cp_async_wait_group(k_pipe_max - 2)
            self.cta_sync_barrier.arrive_and_wait()
            cute.autovec_copy(tCsA_p[None, None, 0], tCrA[None, None, 0])
            cute.autovec_copy(tCsB_p[None, None, 0], tCrB[None, None, 0])
        for _ in range(k_tile_count):
            for k_block in range(k_block_max, unroll_full=True):
                if k_block == k_block_max - 1:
                    tCsA_p = tCsA[None, None, None, smem_pipe_read]
                    tCsB_p = tCsB[None, None, None, smem_pipe_read]
                    cute.arch.cp_async_wait_group(k_pipe_max - 2)
                    self.cta_sync_barrier.arrive_and_wait()
                k_block_next = (k_block + 1) % k_block_max
                cute.autovec_copy(tCsA_p[None, None, k_block_next], tCrA[None, None, k_block_next])
                cute.autovec_copy(tCsB_p[None, None, k_block_next], tCrB[None, None, k_block_next])
                if k_block == 0:
                    cute.copy(
                        tiled_copy_A,
                        tAgA[None, None, None, gmem_pipe_read],
                        tAsA[None, None, None, smem_pipe_write],
                        pred=tApA,
                    )
                cute.gemm(
                    tiled_mma, tCrC, tCrA[None, None, k_block], tCrB[None, None, k_block], tCrC
                )
                if k_block == 0:
                    cute.copy(
                        tiled_copy_B,
                        tBgB[None, None, None, gmem_pipe_read],
                        tBsB[None, None, None, smem_pipe_write],
                        pred=tBpB,
                    )
                    cute.arch.cp_async_commit_group()
                    smem_pipe_write = smem_pipe_read
                    smem_pipe_read = smem_pipe_read + 1
                    if smem_pipe_read == k_pipe_max:
                        smem_pipe_read = cutlass.Int32(0)
                    gmem_pipe_read = (
                        gmem_pipe_read + 1
                        if gmem_pipe_read + 1 < k_tile_count
                        else cutlass.Int32(1)
                    )
        cute.arch.cp_async_wait_group(0)
        self.cta_sync_barrier.arrive_and_wait()
        tCrC.store(epilogue_op(tCrC.load() * alpha))
        cC = cute.make_identity_tensor(gC.shape)
        tCpC = thr_mma.partition_C(cC)
        predC = cute.make_rmem_tensor(tCrC.layout, cutlass.Boolean)
        residue_m = mC.shape[0] - cutlass.Int32(self._bM) * bidx
        residue_n = mC.shape[1] - cutlass.Int32(self._bN) * bidy
        for i in range(cute.size(tCrC.shape)):
            predC[i] = cute.elem_less(tCpC[i], (residue_m, residue_n))
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mC.element_type)
        cute.copy(atom, tCrC, tCgC, pred=predC)
        return


def check(m=70, n=45, k=37, a_major="m", b_major="n", c_major="n", static=False, relu=True):
    rng = np.random.default_rng(0)

    def mk(r, c, major0):
        x = rng.integers(-4, 5, (c, r) if major0 else (r, c)).astype(np.float32)
        return x.T if major0 else x

    a, b, c = mk(m, k, a_major == "m"), mk(n, k, b_major == "n"), mk(m, n, c_major == "m")

    def t(x, lead):
        v = from_dlpack(x, assumed_align=16)
        if static:
            return v
        return v.mark_layout_dynamic(leading_dim=lead)

    va, vb, vc = (
        t(a, 0 if a_major == "m" else 1),
        t(b, 0 if b_major == "n" else 1),
        t(c, 0 if c_major == "m" else 1),
    )
    if a_major == "m" and m % 4 == 0:
        va = va.mark_compact_shape_dynamic(mode=0, stride_order=(1, 0), divisibility=4)
    op = (lambda x: cute.where(x > 0, x, cute.full_like(x, 0))) if relu else (lambda x: x)
    fn = cute.compile(SimtGemm(), va, vb, vc, 2.0, op)
    fn(va, vb, vc, 2.0)
    want = 2.0 * (a @ b.T)
    np.testing.assert_array_equal(c, np.maximum(want, 0) if relu else want)


def run():
    check()
    check(a_major="k", b_major="k", c_major="m", relu=False, m=5, n=100, k=9)
    check(static=True, k=8, m=64, n=64)
