"""Bounds of the products of weak_products.py on a Hopper GPU, beside cuBLAS and `ops.matmul`.

    python bench/gpu/matmul_bound.py [--only TEXT ...] [--compile]

For the tile and cluster of `TILES`, in microseconds:

- "bytes": A, B and C once between device memory and the chip, at the speed of a large copy, which
  reads and writes as many bytes together;
- "wgmma": the products of all steps of K of the tiles that the busiest multiprocessor gets, on
  all of these at once, with operands that lie in shared memory from the start. Nothing is loaded,
  no barrier is waited for, nothing is stored;
- "both": kernels in a row that load all tiles of A and B as `ops.matmul` does, by TMA into the same
  ring, and multiply as many stages meanwhile, without that either waits for the other; nothing is
  stored. A kernel of such tiles has these loads and these products, and more: the first product
  waits for the first load, and C is stored behind the last one;
- "launch": kernels of the same grid, cluster and shared memory that do nothing, in a row.

"bound" is the longest of "bytes", "wgmma" and "both": no kernel of such tiles takes less. The last
columns are the bound by the time of cuBLAS and of `ops.matmul`: what is missing to 1 is the most
that a better kernel of these tiles could save. All are medians of turns, in CUDA graphs. With
`--compile` nothing is run: it tells registers and spills of sm_90a.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from narrow_bound import mixed
from weak_products import staged

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.ops.gemm.operands import three_modes
from basedsl_cute.ops.hopper.collective import (
    LoadParams,
    allocate_staged,
    issue_mma,
    mma_fragments,
    producer_warp,
    staged_layouts,
    tile_schedule,
    tma_load_atoms,
    wait_for_predecessor,
)
from basedsl_cute.ops.hopper.config import HopperGemmKinds
from basedsl_cute.ops.hopper.split_k_gemm import Config, shared_tensors
from basedsl_cute.utils.hopper_helpers import LayoutEnum
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)

PROCESSORS = 132
ROUNDS = 7
COPIED = 2**29  # bytes
FINITE_HALVES = 0xBFFFBFFF
# (M, N, K) -> rows and columns of a tile, slices of K of a tile, consumers, blocks of a cluster
TILES = {
    (1000, 1000, 1000): (128, 72, 1, 2, (4, 2)),
    (512, 1536, 3072): (64, 128, 1, 1, (4, 1)),
    (1536, 1536, 8192): (192, 96, 1, 3, (1, 2)),
    (768, 2048, 8192): (192, 64, 1, 3, (2, 1)),
    (128, 50304, 1536): (128, 128, 1, 2, (1, 1)),
    (512, 512, 65536): (128, 256, 16, 2, (2, 1)),
    (256, 21504, 7168): (256, 176, 1, 2, (1, 2)),
}


@cute.kernel
def steps_kernel(
    out: cute.Tensor,
    steps: cute.Int32,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
):
    """Multiply stages that are in shared memory, `steps` of them for each tile of each block."""
    smem = cute.utils.SmemAllocator()
    sa, sb, sums = shared_tensors(smem, kinds, cfg)
    thread, threads = arch.thread_idx()[0], 128 * cfg.consumers
    start = cute.recast_ptr(sums.iterator, dtype=cute.Uint32)
    size = cfg.ring_bytes(kinds.a, kinds.b) // 4
    words = cute.make_tensor(start, cute.make_layout(size))
    for i in cute.range(thread, size, threads, unroll=1):
        words[i] = mixed(i, FINITE_HALVES)
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    mma, acc, ra, rb = mma_fragments(sa, sb, arch.make_warp_uniform(thread // 128), kinds, cfg)
    acc.fill(0)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    stage = cute.Int32(0)
    for _ in cute.range(steps, unroll=1):
        issue_mma(mma, acc, ra, rb, stage)
        stage = cute.where(stage == cfg.stages - 1, 0, stage + 1)
        warpgroup.wait_group(1)
    warpgroup.wait_group(0)
    if acc[0] == 1.5:  # so that the products are needed
        out[thread] = acc[1]


@cute.kernel
def both_kernel(
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    out: cute.Tensor,
    schedule: PersistentTileSchedulerParams,
    k_tiles: cute.Int32,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    parts: cute.Constexpr,
):
    """Load all tiles, and multiply as many stages, whatever they hold by then."""
    arch.griddepcontrol_launch_dependents()
    layout_a, layout_b = staged_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    sa = allocate_staged(smem, kinds.a, layout_a)
    sb = allocate_staged(smem, kinds.b, layout_b)
    (bm, bn, bk), (cm, cn) = cfg.tile, cfg.cluster
    loaded = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=cfg.stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, cm + cn - 1),
        tx_count=(bm * kinds.a.width + bn * kinds.b.width) * bk // 8,
        cta_layout_vmnk=cute.make_layout((1, cm, cn, 1)),
    )
    scheduler = StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    warp = arch.make_warp_uniform(arch.warp_idx())
    if warp < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp == 0:
            loads = LoadParams(loaded, load_a, tma_a, sa, load_b, tma_b, sb, parts > 1)
            producer_warp(loads, scheduler, work, k_tiles, cfg)
        elif warp == 1:
            release_stages(loaded, scheduler, work, k_tiles)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        wait_for_predecessor(cfg)
        multiply_stages(sa, sb, out, warp // 4 - 1, scheduler, work, k_tiles, kinds, cfg)
    if cute.const_expr(cm * cn > 1):
        arch.cluster_arrive()  # none ends while others load into its stages
        arch.cluster_wait()


@cute.jit
def release_stages(loaded, scheduler, work, k_tiles):
    """Release each stage to the producer as soon as it is full, by one warp."""
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, loaded.num_stages)
    while work.is_valid_tile:
        for _ in cute.range(k_tiles, unroll=1):
            loaded.consumer_wait(read)
            loaded.consumer_release(read)
            read.advance()
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@cute.jit
def multiply_stages(
    sa, sb, out, consumer, scheduler, work, k_tiles, kinds: cute.Constexpr, cfg: cute.Constexpr
):
    """Multiply one stage after the other by a warpgroup, without waiting for what they hold."""
    mma, acc, ra, rb = mma_fragments(sa, sb, consumer, kinds, cfg)
    acc.fill(0)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    stage = cute.Int32(0)
    while work.is_valid_tile:
        for _ in cute.range(k_tiles, unroll=1):
            issue_mma(mma, acc, ra, rb, stage)
            stage = cute.where(stage == cfg.stages - 1, 0, stage + 1)
            warpgroup.wait_group(1)
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    warpgroup.wait_group(0)
    if acc[0] == 1.5:  # so that the products are needed
        out[arch.thread_idx()[0]] = acc[1]


@cute.kernel
def empty_kernel():
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()


@cute.jit
def run_steps(
    out: cute.Tensor,
    steps: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Int64,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
):
    steps_kernel(out, steps, kinds, cfg).launch(
        grid=blocks,
        block=128 * cfg.consumers,
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
    )


@cute.jit
def run_both(
    a: cute.Tensor,
    b: cute.Tensor,
    out: cute.Tensor,
    processors: cute.Int32,
    stream: cute.Int64,
    parts: cute.Constexpr,
    cfg: cute.Constexpr,
):
    a, b = three_modes(a), three_modes(b)
    majors = (LayoutEnum.from_tensor(x) for x in (a, b))
    kinds = HopperGemmKinds(
        a.element_type, b.element_type, a.element_type, *majors, LayoutEnum.ROW_MAJOR, True
    )
    (load_a, tma_a), (load_b, tma_b) = tma_load_atoms(a, b, kinds, cfg, cfg.promotion)
    schedule, grid = tile_schedule((a.shape[0], b.shape[0], parts), processors, cfg)
    k_tiles = cute.ceil_div(cute.ceil_div(a.shape[1], cfg.tile[2]), parts)
    both_kernel(load_a, tma_a, load_b, tma_b, out, schedule, k_tiles, kinds, cfg, parts).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
        use_pdl=True,
    )


@cute.jit
def run_nothing(blocks: cute.Int32, stream: cute.Int64, smem: cute.Constexpr):
    empty_kernel().launch(
        grid=blocks,
        block=384,
        cluster=(2, 1, 1),
        smem=smem,
        stream=cute.Stream(stream.ir_value()),
        use_pdl=True,
    )


def kinds_of_halves():
    row = LayoutEnum.ROW_MAJOR
    return HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, row, row, row)


def config_of(rows, columns):
    """Stages of the tile in shared memory; only their number is of interest here."""
    return Config((rows, columns, 64), min(6, 196608 // ((rows + columns) * 128)), rows // 64)


def kernel_of(shape):
    """The configuration of the persistent kernel with the tile of `TILES`."""
    rows, columns, _, consumers, cluster = TILES[shape]
    return staged(rows, columns, consumers, cluster=cluster)


def work_of(shape):
    """Blocks, and steps of K of the busiest one, for a product by the tile of `TILES`."""
    m, n, k = shape
    rows, columns, parts, *_ = TILES[shape]
    tiles = -(-m // rows) * -(-n // columns) * parts
    rounds = -(-tiles // PROCESSORS)
    return min(tiles, PROCESSORS), rounds * -(-k // parts // 64)


def main():
    options = arguments()
    if options.compile:
        return compiled_for_sm90a()
    import torch
    from gemm import seconds
    from shapes import Product, graph_of, name_of
    from weak_products import SHORT

    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    torch.manual_seed(0)

    speed = copy_speed(torch, seconds)
    print(f"{torch.cuda.get_device_name()}, a copy moves {speed / 1e6:.2f} TB/s")
    print(
        f"{'product':<28} {'cuBLAS':>8} {'ours':>8} {'bytes':>7} {'wgmma':>7} {'both':>7} "
        f"{'launch':>7} {'bound':>7} {'/ cuBLAS':>8} {'/ ours':>7}"
    )
    out = torch.empty(1024, device="cuda")
    kinds = kinds_of_halves()
    for shape in SHORT:
        if options.only and not any(t in name_of(*shape) for t in options.only):
            continue
        cfg = config_of(*TILES[shape[3:]][:2])
        blocks, steps = work_of(shape[3:])
        multiply = cute.compile(run_steps, out, 1, 1, 0, kinds, cfg)
        nothing = cute.compile(run_nothing, 2, 0, 200 * 1024)
        run = Product(torch, *shape, None)
        every = list(zip(run.inputs, run.results, strict=True))
        pairs = -(-blocks // 2) * 2
        arrays = [(a, b.mT, out, PROCESSORS) for (a, b), _ in every]
        parts, cfg = TILES[shape[3:]][2], kernel_of(shape[3:])
        load_too = cute.compile(run_both, *arrays[0], 0, parts, cfg)
        graphs = {
            "cuBLAS": (graph_of(torch, run.theirs, every), len(every)),
            "ours": (graph_of(torch, run.ours, every), len(every)),
            "steps": in_a_graph(torch, multiply, [(out, steps, blocks)] * 20),
            "no steps": in_a_graph(torch, multiply, [(out, 0, blocks)] * 20),
            "both": in_a_graph(torch, load_too, arrays),
            "launch": in_a_graph(torch, nothing, [(pairs,)] * 50),
        }
        times = {name: [] for name in graphs}
        for _ in range(ROUNDS):
            for name, (graph, count) in graphs.items():
                several = max(1, round(1e-3 / seconds(graph.replay, 1)))
                times[name].append(seconds(graph.replay, several) / count * 1e6)
        took = {name: statistics.median(found) for name, found in times.items()}
        read = run.facts["bytes"] / speed
        wgmma = took["steps"] - took["no steps"]
        bound = max(read, wgmma, took["both"])
        print(
            f"{name_of(*shape):<28} {took['cuBLAS']:8.2f} {took['ours']:8.2f} {read:7.2f} "
            f"{wgmma:7.2f} {took['both']:7.2f} {took['launch']:7.2f} {bound:7.2f} "
            f"{bound / took['cuBLAS']:8.3f} {bound / took['ours']:7.3f}",
            flush=True,
        )
        del run, every, graphs
    return 0


def in_a_graph(torch, call, every):
    """A CUDA graph of a call with each of the arguments, whose last is the stream, and their
    number.
    """
    call(*every[0], torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for arguments in every:
            call(*arguments, torch.cuda.current_stream().cuda_stream)
    return graph, len(every)


def copy_speed(torch, seconds):
    """Bytes in a microsecond, read and written together, of a copy that is beyond the L2 cache."""
    x = torch.empty(COPIED, device="cuda", dtype=torch.uint8).random_()
    y = torch.empty_like(x)
    return max(2 * COPIED / seconds(lambda: y.copy_(x), 5) / 1e6 for _ in range(5))


def compiled_for_sm90a():
    """Tell registers and spills of the kernels of all tiles."""
    import os

    import numpy as np

    os.environ["CUTE_DSL_ARCH"] = "sm_90a"
    from basedsl_cute.lowering.ptx import ptxas

    halves, ones = np.zeros((256, 8192), np.float16), np.zeros(1024, np.float32)
    for shape, (rows, columns, parts, *_) in TILES.items():
        both = halves, halves, ones, PROCESSORS, 0, parts, kernel_of(shape)
        steps = ones, 1, 1, 0, kinds_of_halves(), config_of(rows, columns)
        for name, function, given in (("steps", run_steps, steps), ("both", run_both, both)):
            made = cute.compile(function, *given)
            report = ptxas.start(made.stages.text("ptx"), "sm_90a").finish()
            (kernel,) = report.kernels.values()
            spilled = kernel.spill_stores + kernel.spill_loads
            print(
                f"{rows} x {columns} {name}: {kernel.registers} registers, {spilled} bytes "
                f"spilled, {len(report.warnings)} warnings"
            )
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--compile", action="store_true", help="run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
