"""Sums of long rows: a cluster of blocks for each, which adds its parts in one block's memory."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import from_dlpack

THREADS = 64
CLUSTER = 4


@cute.kernel
def row_sums_kernel(x: cute.Tensor, out: cute.Tensor):
    tid, _, _ = cute.arch.thread_idx()
    _, row, _ = cute.arch.block_idx()
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())

    smem = cutlass.utils.SmemAllocator()
    parts = smem.allocate_tensor(
        element_type=cutlass.Float32,
        layout=cute.make_layout((THREADS // 32, CLUSTER)),
        byte_alignment=16,
    )
    barrier = smem.allocate_array(element_type=cutlass.Int64, num_elems=1)
    if tid == 0:
        cute.arch.mbarrier_init(barrier, CLUSTER * THREADS // 32)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()

    mine = cutlass.Float32(0.0)
    for i in range(rank * THREADS + tid, x.shape[1], CLUSTER * THREADS):
        mine += x[row, i]
    mine = cute.arch.warp_reduction_sum(mine)
    with cute.arch.elect_one():
        # Into the memory of the cluster's first block.
        target = cute.arch.smem.map_dsmem_ptr(parts.iterator + warp + rank * (THREADS // 32), 0)
        target.store(mine)
        cute.arch.fence_acq_rel_cluster()
        cute.arch.mbarrier_arrive(barrier, peer_cta_rank_in_cluster=0)
    if rank == 0:
        cute.arch.mbarrier_wait(barrier, 0)
        if tid == 0:
            out[row] = parts.load().reduce(cute.ReductionOp.ADD, 0.0, 0)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def row_sums(x: cute.Tensor, out: cute.Tensor):
    row_sums_kernel(x, out).launch(
        grid=(CLUSTER, x.shape[0], 1), block=(THREADS, 1, 1), cluster=(CLUSTER, 1, 1)
    )


def run():
    x = np.random.default_rng(4).integers(-4, 5, (3, 1000)).astype(np.float32)
    out = np.zeros(3, np.float32)
    row_sums(from_dlpack(x).mark_layout_dynamic(), from_dlpack(out).mark_layout_dynamic())
    np.testing.assert_array_equal(out, x.sum(axis=1))
