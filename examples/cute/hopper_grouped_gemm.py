"""C_g = A_g B_g^T for many groups at once on Hopper; their shapes and addresses in device memory.

    python examples/cute/hopper_grouped_gemm.py

A_g is (M, K), B_g is (N, K), C_g is (M, N), N contiguous in C. Nothing of a group is known to the
host: blocks find their tiles from the table of shapes, and make the tensor maps that they copy by
from the tables of addresses and strides, each block its own in global memory. Otherwise the kernel
is that of hopper_gemm.py: a warp that loads, warpgroups that multiply.
"""

from dataclasses import dataclass

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.group_scheduler import (
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from basedsl_cute.utils.tensormap_manager import TensorMapManager, TensorMapUpdateMode
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

EPILOGUE_N, EPILOGUE_STAGES = 64, 2


@dataclass(frozen=True)
class Config:
    """What is chosen at compile time. The tile is (M, N, K), its rows divided among consumers."""

    tile: tuple[int, int, int] = (128, 128, 64)
    stages: int = 4
    consumers: int = 2  # warpgroups that multiply
    producer_registers: int = 40
    consumer_registers: int = 232
    update: TensorMapUpdateMode = TensorMapUpdateMode.SMEM

    def __post_init__(self):
        m, n, k = self.tile
        if m % (64 * self.consumers) or n % EPILOGUE_N or k % 16:
            raise ValueError(f"no tile {self.tile} for {self.consumers} consumers")

    @property
    def maps(self) -> int:
        """Tensor maps of a block: of A, of B, and of C for each consumer."""
        return 2 + self.consumers


@cute.kernel
def grouped_kernel(
    load_a: tma.TmaAtom,
    load_b: tma.TmaAtom,
    store_c: tma.TmaAtom,
    sizes: cute.Tensor,
    strides: cute.Tensor,
    addresses: cute.Tensor,
    maps: cute.Tensor,
    groups: cute.Int32,
    schedule: PersistentTileSchedulerParams,
    dtype: cute.Constexpr,
    major_a: cute.Constexpr,
    major_b: cute.Constexpr,
    cfg: cute.Constexpr,
):
    bm, bn, bk = cfg.tile
    stages = cfg.stages
    layout_a = sm90.make_smem_layout_a(major_a, cfg.tile, dtype, stages)
    layout_b = sm90.make_smem_layout_b(major_b, cfg.tile, dtype, stages)
    row = sm90.LayoutEnum.ROW_MAJOR
    slots = EPILOGUE_STAGES * cfg.consumers
    layout_c = sm90.make_smem_layout_epi(dtype, row, (64, EPILOGUE_N), slots)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * stages)
    scratch = smem.allocate_array(cute.Int64, 16 * cfg.maps, byte_alignment=128)
    sa = smem.allocate_tensor(dtype, layout_a.outer, 1024, on_bytes(layout_a, dtype))
    sb = smem.allocate_tensor(dtype, layout_b.outer, 1024, on_bytes(layout_b, dtype))
    sc = smem.allocate_tensor(dtype, layout_c.outer, 1024, on_bytes(layout_c, dtype))

    warp = arch.make_warp_uniform(arch.warp_idx())
    group = warp // 4
    loads = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, cfg.consumers * 4),
        tx_count=(bm + bn) * bk * dtype.width // 8,
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
    manager = TensorMapManager(cfg.update)
    block = arch.block_idx()[2]
    mine = cute.slice_(maps, (block, None, None)).iterator
    scheduler = StaticPersistentGroupTileScheduler.create(
        schedule,
        arch.block_idx(),
        arch.grid_dim(),
        cfg.tile,
        create_initial_search_state(),
        groups,
        sizes,
    )

    def init(atom, which, by):
        """Warp `by` of the block puts the atom's tensor map where it is going to change it."""
        in_smem = cute.const_expr(cfg.update is TensorMapUpdateMode.SMEM)
        at = (scratch if in_smem else mine) + 16 * which
        manager.init_tensormap_from_atom(atom, at, by)

    def update(atoms, which, tensors, by):
        """Warp `by` makes the block's maps from `which` on those of `tensors`."""
        places = [mine + 16 * (which + i) for i in range(len(atoms))]
        staging = [scratch + 16 * (which + i) for i in range(len(atoms))]
        manager.update_tensormap(tensors, atoms, places, by, staging)
        for place in places:
            manager.fence_tensormap_update(place)
        return places

    def matrix(of, operand, rows, columns):
        """An operand of a group; which mode is contiguous is the same in all groups."""
        pointer = cute.make_ptr(
            dtype, addresses[of, operand], cute.AddressSpace.gmem, assumed_align=16
        )
        steps = (strides[of, operand, 0], strides[of, operand, 1])
        leading = (major_a, major_b, row)[operand]
        if cute.const_expr(leading == row):
            steps = (steps[0], 1)
        else:
            steps = (1, steps[1])
        return cute.make_tensor(pointer, cute.make_layout((rows, columns), stride=steps))

    if group == 0:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp == 0:
            init(load_a, 0, 0)
            init(load_b, 1, 0)
            at_a, at_b = mine, mine + 16
            filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, stages)
            current = cute.Int32(-1)
            work = scheduler.initial_work_tile_info()
            while work.is_valid_tile:
                m, n, g = work.tile_idx
                found = work.group_search_result
                rows, columns, depth = (
                    found.problem_shape_m,
                    found.problem_shape_n,
                    found.problem_shape_k,
                )
                if g != current and depth > 0:
                    # The copies issued so far have read their tensor maps.
                    arch.cp_async_bulk_commit_group()
                    arch.cp_async_bulk_wait_group(0, read=True)
                    tensors = (matrix(g, 0, rows, depth), matrix(g, 1, columns, depth))
                    update((load_a, load_b), 0, tensors, 0)
                    current = g
                ga = cute.zipped_divide(cute.make_identity_tensor((rows, depth)), (bm, bk))
                gb = cute.zipped_divide(cute.make_identity_tensor((columns, depth)), (bn, bk))
                ta_s, ta_g = tma.tma_partition(load_a, 0, None, cute.group_modes(sa, 0, 2), ga)
                tb_s, tb_g = tma.tma_partition(load_b, 0, None, cute.group_modes(sb, 0, 2), gb)
                for k in cute.range(found.cta_tile_count_k, unroll=1):
                    loads.producer_acquire(filled)
                    barrier = loads.producer_get_barrier(filled)
                    cute.copy(
                        load_a,
                        ta_g[None, (m, k)],
                        ta_s[None, filled.index],
                        tma_bar_ptr=barrier,
                        tma_desc_ptr=at_a,
                    )
                    cute.copy(
                        load_b,
                        tb_g[None, (n, k)],
                        tb_s[None, filled.index],
                        tma_bar_ptr=barrier,
                        tma_desc_ptr=at_b,
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
        epilogue = cute.make_tiled_mma(
            warpgroup.MmaF16BF16Op(
                dtype,
                cute.Float32,
                (64, EPILOGUE_N, 16),
                warpgroup.OperandSource.SMEM,
                warpgroup.OperandMajorMode.K,
                warpgroup.OperandMajorMode.K,
            )
        )
        tc = epilogue.get_slice(thread).partition_C(sc)
        turn = pipeline.NamedBarrier(1 + consumer, 128)
        stores = pipeline.PipelineTmaStore.create(num_stages=EPILOGUE_STAGES)
        leader = 4 * group  # the warp that stores for this warpgroup
        map_c = 2 + consumer
        at_c = mine + 16 * map_c
        init(store_c, map_c, leader)

        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
        done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
        current = cute.Int32(-1)
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            m, n, g = work.tile_idx
            found = work.group_search_result
            if found.cta_tile_count_k == 0:
                acc.fill(0.0)
            for k in cute.range(found.cta_tile_count_k, unroll=1):
                loads.consumer_wait(read)
                mma.set(warpgroup.Field.ACCUMULATE, k > 0)
                warpgroup.fence()
                stage = (None, None, None, read.index)
                cute.gemm(mma, acc, ra[stage], rb[stage], acc)
                warpgroup.commit_group()
                read.advance()
                if k > 0:  # the multiplication before this one is complete
                    warpgroup.wait_group(1)
                    loads.consumer_release(done)
                    done.advance()
            warpgroup.wait_group(0)
            if found.cta_tile_count_k > 0:
                loads.consumer_release(done)
                done.advance()

            rows, columns = found.problem_shape_m, found.problem_shape_n
            if g != current and warp == leader:
                arch.cp_async_bulk_wait_group(0, read=False)
                update((store_c,), map_c, (matrix(g, 2, rows, columns),), leader)
            current = g
            gc = cute.zipped_divide(cute.make_identity_tensor((rows, columns)), (64, EPILOGUE_N))
            tc_s, tc_g = tma.tma_partition(store_c, 0, None, cute.group_modes(sc, 0, 2), gc)
            for i in cute.range_constexpr(across * down):
                piece = scheduler.num_tiles_executed * (across * down) + i
                slot = consumer * EPILOGUE_STAGES + piece % EPILOGUE_STAGES
                if warp == leader:
                    stores.producer_acquire()
                turn.arrive_and_wait()
                out = cute.make_rmem_tensor(tc[None, 0, 0, 0].shape, dtype)
                out.store(by_tile[None, i].load().to(dtype).reshape(out.shape))
                cute.autovec_copy(out, tc[None, 0, 0, slot])
                arch.fence_view_async_shared()
                turn.arrive_and_wait()
                if warp == leader:
                    row_block = (m * down + i // across) * cfg.consumers + consumer
                    where = (row_block, n * across + i % across)
                    cute.copy(store_c, tc_s[None, slot], tc_g[None, where], tma_desc_ptr=at_c)
                    stores.producer_commit()
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        if warp == leader:
            stores.producer_tail()


def on_bytes(layout, dtype):
    """The swizzle of a shared layout on bits of the byte address."""
    return cute.recast_layout(8, dtype.width, layout.inner)


@cute.jit
def grouped_gemm(
    sizes: cute.Tensor,
    strides: cute.Tensor,
    addresses: cute.Tensor,
    maps: cute.Tensor,
    dtype: cute.Constexpr,
    major_a: cute.Constexpr = sm90.LayoutEnum.ROW_MAJOR,
    major_b: cute.Constexpr = sm90.LayoutEnum.ROW_MAJOR,
    cfg: cute.Constexpr = Config(),
):
    """All products, on as many resident blocks as `maps` has room for.

    `sizes` is (groups, 4) of Int32: M, N, K, 1. `strides` is (groups, 3, 2) of Int32: those of A, B
    and C in elements, of which the one of the contiguous mode is 1 and the other a multiple of 16
    bytes. `addresses` is (groups, 3) of Int64, multiples of 16. `maps` is (blocks, cfg.maps, 16) of
    Int64 at a multiple of 128 bytes, to work in. LayoutEnum.ROW_MAJOR says that K is contiguous.
    """
    bm, bn, bk = cfg.tile
    layout_a = sm90.make_smem_layout_a(major_a, cfg.tile, dtype, cfg.stages)
    layout_b = sm90.make_smem_layout_b(major_b, cfg.tile, dtype, cfg.stages)
    row = sm90.LayoutEnum.ROW_MAJOR
    layout_c = sm90.make_smem_layout_epi(dtype, row, (64, EPILOGUE_N), 1)
    # The atoms' own tensor maps are patterns: of any tensor with the same mode contiguous.
    base = cute.recast_ptr(maps.iterator, dtype=dtype)
    patterns = [
        cute.make_tensor(base, cute.make_layout((64, 64), stride=(64, 1) if by_row else (1, 64)))
        for by_row in (major_a == row, major_b == row, True)
    ]
    load, store = tma.CopyBulkTensorTileG2SOp(), tma.CopyBulkTensorTileS2GOp()
    stage = (None, None, 0)
    load_a, _ = tma.make_tiled_tma_atom(load, patterns[0], cute.slice_(layout_a, stage), (bm, bk))
    load_b, _ = tma.make_tiled_tma_atom(load, patterns[1], cute.slice_(layout_b, stage), (bn, bk))
    store_c, _ = tma.make_tiled_tma_atom(
        store, patterns[2], cute.slice_(layout_c, stage), (64, EPILOGUE_N)
    )
    blocks = maps.shape[0]
    schedule = PersistentTileSchedulerParams((1, 1, blocks), (1, 1, 1))
    grouped_kernel(
        load_a,
        load_b,
        store_c,
        sizes,
        strides,
        addresses,
        maps,
        sizes.shape[0],
        schedule,
        dtype,
        major_a,
        major_b,
        cfg,
    ).launch(grid=(1, 1, blocks), block=(128 * (cfg.consumers + 1), 1, 1), min_blocks_per_mp=1)


def aligned(shape, dtype, to=128):
    """A NumPy array of zeros at a multiple of `to` bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + to, np.uint8)
    start = -raw.ctypes.data % to
    return raw[start : start + size].view(dtype).reshape(shape)


def tables(triples):
    """`sizes`, `strides` and `addresses` of groups (a, b, c) of NumPy arrays or PyTorch tensors."""
    sizes, strides, addresses = [], [], []
    for a, b, c in triples:
        sizes.append((a.shape[0], b.shape[0], a.shape[1], 1))
        if isinstance(a, np.ndarray):
            strides.append([[s // x.itemsize for s in x.strides] for x in (a, b, c)])
            addresses.append([x.ctypes.data for x in (a, b, c)])
        else:
            strides.append([x.stride() for x in (a, b, c)])
            addresses.append([x.data_ptr() for x in (a, b, c)])
    return (
        np.array(sizes, np.int32).reshape(-1, 4),
        np.array(strides, np.int32).reshape(-1, 3, 2),
        np.array(addresses, np.int64).reshape(-1, 3),
    )


if __name__ == "__main__":
    from basedsl_cute.sim import reachable

    rng = np.random.default_rng(0)
    groups = [
        [rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k))]
        for m, n, k in ((128, 64, 128), (40, 200, 72), (0, 64, 64), (256, 128, 64))
    ]
    expected = [a.astype(np.float32) @ b.astype(np.float32).T for a, b in groups]
    maps = aligned((3, Config().maps, 16), np.int64)
    if cute.utils.HardwareInfo().get_device_multiprocessor_count() > 1:
        import torch

        on_gpu = [[torch.from_numpy(x).cuda() for x in pair] for pair in groups]
        triples = [(a, b, a.new_zeros(a.shape[0], b.shape[0])) for a, b in on_gpu]
        described = [torch.from_numpy(x).cuda() for x in (*tables(triples), maps)]
        grouped_gemm(*described, cute.Float16)
        results = [c.cpu().numpy() for _, _, c in triples]
    else:
        triples = []
        for pair in groups:
            a, b = (aligned(x.shape, x.dtype) for x in pair)
            a[:], b[:] = pair
            triples.append((a, b, aligned((len(a), len(b)), np.float16)))
        with reachable(*(x for triple in triples for x in triple)):
            grouped_gemm(*tables(triples), maps, cute.Float16)
        results = [c for _, _, c in triples]
    errors = [np.abs(x - c).max(initial=0) for x, c in zip(expected, results, strict=True)]
    print("largest error:", max(errors))
