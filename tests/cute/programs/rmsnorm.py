"""RMS norm: a block for each row, partial sums through warps and shared memory."""

import operator

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import from_dlpack


class RMSNorm:
    """Rows of `width` elements, `threads` threads each."""

    def __init__(self, dtype, width, threads=128):
        self.dtype = dtype
        self.width = width
        self.threads = threads
        self.vector = 128 // dtype.width
        if width % (threads * self.vector):
            raise ValueError(f"{width} is no multiple of {threads * self.vector}")

    @property
    def warps(self):
        return self.threads // cute.arch.WARP_SIZE

    def tiled_copy(self, dtype):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=128)
        return cute.make_tiled_copy_tv(
            atom,
            cute.make_layout((1, self.threads)),
            cute.make_layout((1, self.vector)),
        )

    @cute.jit
    def __call__(
        self,
        x: cute.Tensor,
        weight: cute.Tensor,
        out: cute.Tensor,
        eps: cutlass.Float32 = 1e-6,
        stream=None,
    ):
        assert x.element_type == self.dtype, "the type is configured"
        # The same weight for every row.
        weight = cute.make_tensor(
            weight.iterator, cute.prepend(weight.layout, cute.make_layout(x.shape[0], stride=0))
        )
        self.kernel(x, weight, out, eps, self.tiled_copy(self.dtype)).launch(
            grid=[x.shape[0], 1, 1],
            block=[self.threads, 1, 1],
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        x: cute.Tensor,
        weight: cute.Tensor,
        out: cute.Tensor,
        eps: cutlass.Float32,
        tiled_copy: cute.TiledCopy,
    ):
        tid, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()

        @cute.struct
        class Shared:
            partial: cute.struct.MemRange[cutlass.Float32, self.warps]
            scale: cutlass.Float32

        storage = cutlass.utils.SmemAllocator().allocate(Shared)
        partial = storage.partial.get_tensor(cute.make_layout(self.warps))

        thread = tiled_copy.get_slice(tid)
        tile = (1, self.width)
        gX, gW, gO = (cute.local_tile(t, tile, (row, 0)) for t in (x, weight, out))
        tXgX, tXgW, tXgO = thread.partition_S(gX), thread.partition_S(gW), thread.partition_D(gO)
        tXrX = cute.make_fragment_like(tXgX)
        tXrW = cute.make_fragment_like(tXgW)
        cute.copy(tiled_copy, tXgX, tXrX)
        cute.copy(tiled_copy, tXgW, tXrW)

        values = tXrX.load().to(cutlass.Float32)
        total = (values * values).reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
        total = cute.arch.warp_reduction(total, operator.add)
        if cute.arch.lane_idx() == 0:
            partial[cute.arch.warp_idx()] = total
        cute.arch.sync_threads()
        if tid == 0:
            sum_of_warps = cutlass.Float32(0.0)
            for w in cutlass.range_constexpr(self.warps):
                sum_of_warps += partial[w]
            storage.scale = cute.math.rsqrt(sum_of_warps / self.width + eps)
        cute.arch.sync_threads()
        normal = values * storage.scale * tXrW.load().to(cutlass.Float32)
        tXrO = cute.make_fragment_like(tXgO)
        tXrO.store(normal.to(tXrO.element_type))
        cute.copy(tiled_copy, tXrO, tXgO)


def run():
    rng = np.random.default_rng(3)
    width = 1024
    norm = RMSNorm(cutlass.Float16, width)
    compiled = None
    for rows in (3, 5):
        x = rng.standard_normal((rows, width)).astype(np.float16)
        weight = rng.standard_normal(width).astype(np.float16)
        out = np.zeros_like(x)
        arguments = [
            from_dlpack(t, assumed_align=16).mark_compact_shape_dynamic(mode=0)
            if t.ndim == 2
            else from_dlpack(t, assumed_align=16)
            for t in (x, weight, out)
        ]
        if compiled is None:
            compiled = cute.compile(norm, *arguments)
        compiled(*arguments, eps=1e-3)
        wide = x.astype(np.float64)
        wanted = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-3) * weight
        np.testing.assert_allclose(out, wanted, atol=2e-2, rtol=2e-3)
