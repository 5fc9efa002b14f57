"""Copies of a matrix for every block of a cluster: each block loads a part of a tile for all."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.utils as utils
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack

TILE = (64, 64)
DTYPE = cutlass.Float16


@cute.kernel
def kernel(
    tma: cute.CopyAtom,
    mX: cute.Tensor,
    tma_s: cute.CopyAtom,
    mY: cute.Tensor,
    lay: cute.ComposedLayout,
    cl: cutlass.Constexpr,
):
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    bx, by, _ = cute.arch.block_idx()
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(DTYPE, lay.outer, 1024, swizzle=lay.inner)
    bar = smem.allocate_array(cutlass.Int64)
    cl_layout = cute.make_layout((1, cl[0], cl[1], 1))
    if warp == 0:
        with cute.arch.elect_one():
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive_relaxed()
    cute.arch.cluster_wait()
    n = cute.size(cl_layout)
    g = cute.local_tile(mX, TILE, (bx // cl[0], by // cl[1]))
    tS, tG = cpasync.tma_partition(
        tma, rank, cute.make_layout(n), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2)
    )
    if warp == 0:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(DTYPE, lay))
        cute.copy(tma, tG, tS, tma_bar_ptr=bar, mcast_mask=cutlass.Int16((1 << n) - 1))
    cute.arch.mbarrier_wait(bar, 0)
    gy = cute.local_tile(mY, (*TILE, 1), (bx // cl[0], by // cl[1], rank))
    tS2, tG2 = cpasync.tma_partition(
        tma_s, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(gy, 0, 3)
    )
    cute.arch.sync_threads()
    if warp == 0:
        cute.copy(tma_s, tS2, tG2)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def copy_to_all(x: cute.Tensor, y: cute.Tensor, cl: cutlass.Constexpr):
    lay = utils.sm90.make_smem_layout_epi(x.element_type, utils.LayoutEnum.ROW_MAJOR, TILE, 1)
    lay1 = cute.slice_(lay, (None, None, 0))
    n = cl[0] * cl[1]
    tma, mX = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SMulticastOp(), x, lay1, TILE, num_multicast=n
    )
    tma_s, mY = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), y, lay1, (*TILE, 1))
    gm, gn = cute.ceil_div(x.shape, TILE)
    kernel(tma, mX, tma_s, mY, lay1, cl).launch(
        grid=(gm * cl[0], gn * cl[1], 1), block=(64, 1, 1), cluster=(*cl, 1)
    )


def run():
    for cluster in ((2, 2), (1, 4)):
        blocks = cluster[0] * cluster[1]
        x = np.random.default_rng(0).standard_normal((100, 136)).astype(np.float16)
        y = np.full((blocks, 100, 136), np.nan, np.float16)
        copies = from_dlpack(y.transpose(1, 2, 0)).mark_layout_dynamic()
        copy_to_all(from_dlpack(x).mark_layout_dynamic(), copies, cluster)
        np.testing.assert_array_equal(y, np.broadcast_to(x, y.shape))
