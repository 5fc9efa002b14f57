"""C = A B^T on Hopper: persistent, warp-specialised, TMA and wgmma. fp16 or bf16, float32 inside.

    python examples/cute/hopper_gemm.py

A is (M, K), B is (N, K), C is (M, N). One warp loads tiles of A and B by TMA into a ring of stages,
multicast within a cluster; two warpgroups multiply them, each half of the rows of a tile, and write
C through shared memory by TMA, which leaves out what lies beyond M and N. Tiles of C are dealt to
resident blocks in advance.
"""

from dataclasses import dataclass

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)

EPILOGUE_N, EPILOGUE_STAGES = 64, 2


@dataclass(frozen=True)
class Config:
    """What is chosen at compile time. The tile is (M, N, K); its rows go to the consumers in turn,
    64 at a time.
    """

    tile: tuple[int, int, int] = (128, 256, 64)
    stages: int = 4
    consumers: int = 2  # warpgroups that multiply
    cluster: tuple[int, int] = (1, 1)
    swizzle: int = 8
    along_m: bool = True
    producer_registers: int = 40
    consumer_registers: int = 232

    def __post_init__(self):
        m, n, k = self.tile
        if m % (64 * self.consumers) or n % EPILOGUE_N or k % 16:
            raise ValueError(f"no tile {self.tile} for {self.consumers} consumers")

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)


@cute.kernel
def gemm_kernel(
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    store_c: tma.TmaAtom,
    tma_c: cute.Tensor,
    schedule: PersistentTileSchedulerParams,
    k_tiles: cute.Int32,
    dtype: cute.Constexpr,
    major_a: cute.Constexpr,
    major_b: cute.Constexpr,
    cfg: cute.Constexpr,
):
    bm, bn, bk = cfg.tile
    stages = cfg.stages
    layout_a = sm90.make_smem_layout_a(major_a, cfg.tile, dtype, stages)
    layout_b = sm90.make_smem_layout_b(major_b, cfg.tile, dtype, stages)
    # Each consumer has tiles of 64 x 64 of its own for the epilogue.
    row = sm90.LayoutEnum.ROW_MAJOR
    slots = EPILOGUE_STAGES * cfg.consumers
    layout_c = sm90.make_smem_layout_epi(dtype, row, (64, EPILOGUE_N), slots)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * stages)
    sa = smem.allocate_tensor(dtype, layout_a.outer, 1024, sm90_swizzle(layout_a, dtype))
    sb = smem.allocate_tensor(dtype, layout_b.outer, 1024, sm90_swizzle(layout_b, dtype))
    sc = smem.allocate_tensor(dtype, layout_c.outer, 1024, sm90_swizzle(layout_c, dtype))

    warp = arch.make_warp_uniform(arch.warp_idx())
    group = warp // 4
    if warp == 0:
        tma.prefetch_descriptor(load_a)
        tma.prefetch_descriptor(load_b)
        tma.prefetch_descriptor(store_c)

    cm, cn = cfg.cluster
    cta_layout = cute.make_layout((1, cm, cn, 1))
    loads = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(
            pipeline.Agent.Thread, (cm + cn - 1) * cfg.consumers * 4
        ),
        tx_count=(bm + bn) * bk * dtype.width // 8,
        cta_layout_vmnk=cta_layout,
    )
    mma = sm90.make_trivial_tiled_mma(
        dtype,
        dtype,
        major_a.sm90_mma_major_mode(),
        major_b.sm90_mma_major_mode(),
        cute.Float32,
        (cfg.consumers, 1, 1),
        (64, bn),
    )
    scheduler = StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())

    if group == 0:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp == 0:
            rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
            at_m, at_n = rank % cm, rank // cm
            ga = cute.zipped_divide(tma_a, (bm, bk))
            gb = cute.zipped_divide(tma_b, (bn, bk))
            along_n, along_m = cute.make_layout(cn), cute.make_layout(cm)
            ta_s, ta_g = tma.tma_partition(load_a, at_n, along_n, cute.group_modes(sa, 0, 2), ga)
            tb_s, tb_g = tma.tma_partition(load_b, at_m, along_m, cute.group_modes(sb, 0, 2), gb)
            mask_a = mask_b = None
            if cute.const_expr(cn > 1):
                mask_a = tma.create_tma_multicast_mask(cta_layout, (0, at_m, at_n, 0), 2)
            if cute.const_expr(cm > 1):
                mask_b = tma.create_tma_multicast_mask(cta_layout, (0, at_m, at_n, 0), 1)
            filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, stages)
            work = scheduler.initial_work_tile_info()
            while work.is_valid_tile:
                m, n, _ = work.tile_idx
                for k in cute.range(k_tiles, unroll=1):
                    loads.producer_acquire(filled)
                    barrier = loads.producer_get_barrier(filled)
                    cute.copy(
                        load_a,
                        ta_g[None, (m, k)],
                        ta_s[None, filled.index],
                        tma_bar_ptr=barrier,
                        mcast_mask=mask_a,
                    )
                    cute.copy(
                        load_b,
                        tb_g[None, (n, k)],
                        tb_s[None, filled.index],
                        tma_bar_ptr=barrier,
                        mcast_mask=mask_b,
                    )
                    filled.advance()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            loads.producer_tail(filled)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        consumer = group - 1
        thread = arch.thread_idx()[0] % 128
        slice_ = mma.get_slice(consumer * 128)
        ra = mma.make_fragment_A(slice_.partition_A(sa))
        rb = mma.make_fragment_B(slice_.partition_B(sb))
        acc = mma.make_fragment_C(mma.partition_shape_C((bm, bn)))
        across, down = bn // EPILOGUE_N, bm // (64 * cfg.consumers)
        pieces = cute.make_layout((EPILOGUE_N // 2, across * down))
        by_tile = cute.make_tensor(acc.iterator, pieces)
        epilogue = warpgroup.WarpgroupMma(
            warpgroup.MmaF16BF16Op(dtype, cute.Float32, (64, EPILOGUE_N, 16))
        )
        tc = epilogue.get_slice(thread).partition_C(sc)
        gc = cute.zipped_divide(tma_c, (64, EPILOGUE_N))
        tc_s, tc_g = tma.tma_partition(store_c, 0, None, cute.group_modes(sc, 0, 2), gc)
        mine = pipeline.NamedBarrier(1 + consumer, 128)
        stores = pipeline.PipelineTmaStore.create(num_stages=EPILOGUE_STAGES)

        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
        done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            for k in cute.range(k_tiles, unroll=1):
                loads.consumer_wait(read)
                mma.set(warpgroup.Field.ACCUMULATE, k > 0)
                warpgroup.fence()
                stage = (None, None, None, read.index)
                mma.gemm(acc, ra[stage], rb[stage], acc)
                warpgroup.commit_group()
                read.advance()
                if k > 0:  # the multiplication before this one is complete
                    warpgroup.wait_group(1)
                    loads.consumer_release(done)
                    done.advance()
            warpgroup.wait_group(0)
            loads.consumer_release(done)
            done.advance()

            m, n, _ = work.tile_idx
            for i in cute.range_constexpr(across * down):
                piece = scheduler.num_tiles_executed * (across * down) + i
                slot = consumer * EPILOGUE_STAGES + piece % EPILOGUE_STAGES
                if thread < 32:
                    stores.producer_acquire()
                mine.arrive_and_wait()
                out = cute.make_rmem_tensor(tc[None, 0, 0, 0].shape, dtype)
                out.store(by_tile[None, i].load().to(dtype).reshape(out.shape))
                cute.autovec_copy(out, tc[None, 0, 0, slot])
                arch.fence_view_async_shared()
                mine.arrive_and_wait()
                if thread < 32:
                    row_block = (m * down + i // across) * cfg.consumers + consumer
                    where = (row_block, n * across + i % across)
                    cute.copy(store_c, tc_s[None, slot], tc_g[None, where])
                    stores.producer_commit()
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        if thread < 32:
            stores.producer_tail()


def sm90_swizzle(layout, dtype):
    """The swizzle of a shared layout on bits of the byte address."""
    return cute.recast_layout(8, dtype.width, layout.inner)


@cute.jit
def gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr = Config(),
):
    """C = A B^T on at most `blocks` resident blocks (a GPU's number of multiprocessors)."""
    bm, bn, bk = cfg.tile
    dtype = a.element_type
    major_a, major_b = sm90.LayoutEnum.from_tensor(a), sm90.LayoutEnum.from_tensor(b)
    layout_a = sm90.make_smem_layout_a(major_a, cfg.tile, dtype, cfg.stages)
    layout_b = sm90.make_smem_layout_b(major_b, cfg.tile, dtype, cfg.stages)
    row = sm90.LayoutEnum.ROW_MAJOR
    layout_c = sm90.make_smem_layout_epi(dtype, row, (64, EPILOGUE_N), 1)
    cm, cn = cfg.cluster
    plain, multicast = tma.CopyBulkTensorTileG2SOp(), tma.CopyBulkTensorTileG2SMulticastOp()
    load_a, tma_a = tma.make_tiled_tma_atom(
        multicast if cn > 1 else plain, a, cute.slice_(layout_a, (None, None, 0)), (bm, bk), cn
    )
    load_b, tma_b = tma.make_tiled_tma_atom(
        multicast if cm > 1 else plain, b, cute.slice_(layout_b, (None, None, 0)), (bn, bk), cm
    )
    store_c, tma_c = tma.make_tiled_tma_atom(
        tma.CopyBulkTensorTileS2GOp(), c, cute.slice_(layout_c, (None, None, 0)), (64, EPILOGUE_N)
    )
    m, n = c.shape
    tiles = (cute.ceil_div(m, bm), cute.ceil_div(n, bn), 1)
    schedule = PersistentTileSchedulerParams(tiles, (cm, cn, 1), cfg.swizzle, cfg.along_m)
    grid = StaticPersistentTileScheduler.get_grid_shape(schedule, blocks // (cm * cn))
    gemm_kernel(
        load_a,
        tma_a,
        load_b,
        tma_b,
        store_c,
        tma_c,
        schedule,
        cute.ceil_div(a.shape[1], bk),
        dtype,
        major_a,
        major_b,
        cfg,
    ).launch(grid=grid, block=(cfg.threads, 1, 1), cluster=(cm, cn, 1), min_blocks_per_mp=1)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((256, 128)).astype(np.float16) for _ in range(2))
    c = np.full((256, 256), np.nan, np.float16)
    gemm(a, b, c, 3, Config(tile=(128, 128, 64)))
    cute.synchronize()
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    print("largest error:", np.abs(c - expected).max())
