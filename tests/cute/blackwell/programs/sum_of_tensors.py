"""A sum of several tensors, tile by tile: one warp loads by TMA and the others add."""

from typing import List

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import numpy as np
from cutlass import Int64
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack


class SumOfTensors:
    def __init__(self):
        self.tile, self.stages = (64, 64), 3

    @cute.jit
    def __call__(self, inputs: List[cute.Tensor], output: cute.Tensor, stream: cuda.CUstream):
        layout = cute.make_layout((*self.tile,), stride=(self.tile[1], 1))
        atoms, tensors = [], []
        for t in inputs:
            atom, tt = cpasync.make_tiled_tma_atom(
                cpasync.CopyBulkTensorTileG2SOp(), t, layout, self.tile
            )
            atoms.append(atom)
            tensors.append(tt)
        self.layout = cute.make_layout(
            (*self.tile, self.stages), stride=(self.tile[1], 1, self.tile[0] * self.tile[1])
        )
        self.kernel(atoms, tensors, output, self.layout).launch(
            grid=cute.ceil_div(output.shape, self.tile) + (1,), block=(160, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(
        self,
        atoms: List[cute.CopyAtom],
        tensors: List[cute.Tensor],
        output: cute.Tensor,
        layout: cute.Layout,
    ):
        bx, by, _ = cute.arch.block_idx()
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        bars = smem.allocate_array(Int64, 2 * self.stages)
        s = smem.allocate_tensor(output.element_type, layout, 128)
        prod, cons = pipeline.PipelineTmaAsync.create(
            barrier_storage=bars,
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4),
            tx_count=cute.size_in_bytes(output.element_type, cute.select(layout, mode=[0, 1])),
        ).make_participants()
        if warp == 4:
            for i in cutlass.range_constexpr(len(atoms)):
                g = cute.local_tile(tensors[i], self.tile, (bx, by))
                ts, tg = cpasync.tma_partition(
                    atoms[i],
                    smem_tensor=cute.group_modes(s, 0, 2),
                    gmem_tensor=cute.group_modes(g, 0, 2),
                    cta_coord=0,
                    cta_layout=cute.make_layout(1),
                )
                h = prod.acquire_and_advance()
                cute.copy(atoms[i], tg, ts[None, h.index], tma_bar_ptr=h.barrier)
            prod.tail()
        else:
            tiled = cute.make_tiled_copy_tv(
                cute.make_copy_atom(
                    cute.nvgpu.CopyUniversalOp(), output.element_type, num_bits_per_copy=128
                ),
                cute.make_layout((16, 8), stride=(8, 1)),
                cute.make_layout((1, 4)),
            )
            thr = tiled.get_slice(tidx)
            part = thr.partition_S(s)
            gout = thr.partition_D(cute.local_tile(output, self.tile, (bx, by)))
            acc = cute.make_rmem_tensor(gout.shape, output.element_type)
            acc.fill(0.0)
            frag = cute.make_rmem_tensor_like(acc)
            for i in cutlass.range(len(atoms)):
                h = cons.wait_and_advance()
                cute.copy(tiled, part[None, None, None, h.index], frag)
                acc.store(acc.load() + frag.load())
                h.release()
            cute.copy(tiled, acc, gout)


def run(count, rows, columns):
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-9, 10, (rows, columns)).astype(np.float32) for _ in range(count)]
    output = np.full((rows, columns), np.nan, np.float32)
    *tensors, out = (from_dlpack(x, assumed_align=16) for x in (*inputs, output))
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    cute.compile(SumOfTensors(), tensors, out, stream)(tensors, out, stream)
    np.testing.assert_array_equal(output, sum(inputs))


if __name__ == "__main__":
    run(5, 128, 192)
    print("PASS")
