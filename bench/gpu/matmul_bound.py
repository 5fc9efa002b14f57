"""Bounds of the products of weak_products.py on a Hopper GPU, beside cuBLAS and `ops.matmul`.

    python bench/gpu/matmul_bound.py [--only TEXT ...] [--compile]

For the tile that the configuration of `TILES` has, in microseconds:

- "bytes": A, B and C once between device memory and the chip, at the speed of a large copy, which
  reads and writes as many bytes together;
- "wgmma": the products of all steps of K of the tiles that the busiest multiprocessor gets, on
  all of these at once, with operands that lie in shared memory from the start. Nothing is loaded,
  no barrier is waited for, nothing is stored: what a kernel without a flaw takes between its first
  operand and its last sum, at the clock that the power allows;
- "launch": kernels of the same grid, cluster and shared memory that do nothing, in a row.

"bound" is the longer of the first two, and the launch where it is not hidden: a kernel with tiles
of this kind takes no less than the longer one, and one with all of a multiprocessor's shared memory
begins no earlier than the one before it ends. The last columns are the bound by the time of cuBLAS
and of `ops.matmul`: above 1 no kernel of such tiles can be as fast. All are medians of turns, in
CUDA graphs. With `--compile` nothing is run: it tells registers and spills of sm_90a.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from narrow_bound import mixed

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import warpgroup
from basedsl_cute.ops.hopper.collective import issue_mma, mma_fragments
from basedsl_cute.ops.hopper.config import HopperGemmKinds
from basedsl_cute.ops.hopper.split_k_gemm import Config, shared_tensors
from basedsl_cute.utils import hopper_helpers as sm90

PROCESSORS = 132
ROUNDS = 7
COPIED = 2**29  # bytes
FINITE_HALVES = 0xBFFFBFFF
# (M, N, K) -> rows and columns of a tile, slices of K of a tile
TILES = {
    (1000, 1000, 1000): (128, 72, 1),
    (512, 1536, 3072): (64, 96, 1),
    (1536, 1536, 8192): (128, 144, 1),
    (768, 2048, 8192): (128, 96, 1),
    (128, 50304, 1536): (128, 192, 1),
    (512, 512, 65536): (128, 128, 8),
    (256, 21504, 7168): (128, 168, 1),
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
    row = sm90.LayoutEnum.ROW_MAJOR
    return HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, row, row, row)


def config_of(rows, columns):
    """Stages of the tile in shared memory; only their number is of interest here."""
    return Config((rows, columns, 64), min(6, 196608 // ((rows + columns) * 128)), rows // 64)


def work_of(shape):
    """Blocks, and steps of K of the busiest one, for a product by the tile of `TILES`."""
    m, n, k = shape
    rows, columns, parts = TILES[shape]
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
        f"{'product':<28} {'cuBLAS':>8} {'ours':>8} {'bytes':>7} {'wgmma':>7} {'launch':>7} "
        f"{'bound':>7} {'/ cuBLAS':>8} {'/ ours':>7}"
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
        graphs = {
            "cuBLAS": (graph_of(torch, run.theirs, every), len(every)),
            "ours": (graph_of(torch, run.ours, every), len(every)),
            "steps": (in_a_graph(torch, 20, multiply, out, steps, blocks), 20),
            "no steps": (in_a_graph(torch, 20, multiply, out, 0, blocks), 20),
            "launch": (in_a_graph(torch, 50, nothing, pairs), 50),
        }
        times = {name: [] for name in graphs}
        for _ in range(ROUNDS):
            for name, (graph, count) in graphs.items():
                several = max(1, round(1e-3 / seconds(graph.replay, 1)))
                times[name].append(seconds(graph.replay, several) / count * 1e6)
        took = {name: statistics.median(found) for name, found in times.items()}
        read = run.facts["bytes"] / speed
        wgmma = took["steps"] - took["no steps"]
        bound = max(read, wgmma) + took["launch"]
        print(
            f"{name_of(*shape):<28} {took['cuBLAS']:8.2f} {took['ours']:8.2f} {read:7.2f} "
            f"{wgmma:7.2f} {took['launch']:7.2f} {bound:7.2f} {bound / took['cuBLAS']:8.3f} "
            f"{bound / took['ours']:7.3f}",
            flush=True,
        )
        del run, every, graphs
    return 0


def in_a_graph(torch, count, call, *arguments):
    """A CUDA graph of `count` calls, whose last argument is the stream."""
    call(*arguments, torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call(*arguments, torch.cuda.current_stream().cuda_stream)
    return graph


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

    for rows, columns, _ in TILES.values():
        made = cute.compile(
            run_steps, np.zeros(1024, np.float32), 1, 1, 0, kinds_of_halves(),
            config_of(rows, columns),
        )  # fmt: skip
        report = ptxas.start(made.stages.text("ptx"), "sm_90a").finish()
        (kernel,) = report.kernels.values()
        spilled = kernel.spill_stores + kernel.spill_loads
        print(
            f"{rows} x {columns}: {kernel.registers} registers, {spilled} bytes spilled, "
            f"{len(report.warnings)} warnings"
        )
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--compile", action="store_true", help="run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
