"""A table of measured times: candidate configurations of `ops.matmul` for many products.

    python bench/gpu/candidates.py --out table.json [--random 200 --seed 0] [--from random.json]

For each product that is listed, it times the configurations that the model of `ops.hopper` ranks
first, and tiles that give every multiprocessor one or two of them, against cuBLAS, whose kernels it
names, in CUDA graphs, in turns, with operands that are beyond the L2 cache. The model is fitted to
such tables. BFloat16, which takes as long, is measured as Float16. `--from` takes the products of
an output of `shapes.py` whose ratio is below `--below`. Kernels are compiled before, by processes
that share the cache on disk.
"""

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compile_ahead import compile_all
from gemm import config_text, seconds
from shapes import WEAK, Product, chosen, graph_of, name_of
from weak_products import SHARED_MEMORY, SHORT, WEAK_KERNELS, split, staged

PROCESSORS = 132
MOST = 18  # configurations of a product
ROUNDS = 5
MICROSECONDS = 800  # of one timing, about


def main():
    options = arguments()
    begin = time.time()
    work = [(shape, candidates(shape)) for shape in products(options)]
    count = sum(len(configs) for _, configs in work)
    if options.compile:
        return compile_some(work, *options.compile)
    print(f"{len(work)} products, {count} pairs of product and configuration")
    compile_all(options.workers, options.seconds / 2)
    print(f"compiled after {time.time() - begin:.0f} s", flush=True)
    import torch

    torch.manual_seed(0)
    rows = []
    for shape, configs in work:
        if time.time() - begin > options.seconds:
            print(f"no time for the others after {options.seconds:.0f} s")
            break
        row = measured(torch, shape, configs)
        rows.append(row)
        print(line(row), flush=True)
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="candidates.json")
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--from", dest="rows", help="an output of shapes.py")
    parser.add_argument("--below", type=float, default=1.0)
    parser.add_argument("--short", action="store_true", help="those of weak_products.py alone")
    parser.add_argument("--most", type=int, default=1000, help="products")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=min(24, os.cpu_count() or 1))
    parser.add_argument("--compile", nargs=2, type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def products(options):
    """The products to measure: all of a draw, or some of it, and the weak rows of `shapes.py`."""
    options.part, options.weak, options.float64 = (0, 1), False, False
    if options.short:
        return [s for s in SHORT if not options.only or any(t in name_of(*s) for t in options.only)]
    shapes = chosen(options)
    if options.rows:
        slow = {
            row["product"]: row["torch"]["kernel"] / row["ours"]["kernel"]
            for row in json.loads(Path(options.rows).read_text())
        }
        shapes = [s for s in shapes if slow.get(name_of(*s), 9) < options.below]
        shapes.sort(key=lambda s: slow[name_of(*s)])
    options.random, options.only = 0, WEAK
    shapes = [s for s in chosen(options) if s[0] != "float8_e4m3fn"] + shapes
    return list(dict.fromkeys(("float16", *s[1:]) for s in shapes))[: options.most]


def candidates(shape):
    """The configurations to measure for a product: the chosen one, also in wider clusters,
    what the model ranks first, and balanced tiles.
    """
    from basedsl_cute.ops.hopper import heuristics

    _, order, batches, m, n, k = shape
    balances = order[0 if m > n else 1] == "k"
    problem = heuristics.Problem(m, n, k, batches, 16, 16, PROCESSORS, True, False, balances)
    first = heuristics.choose_hopper_kernel(problem)[1]
    found = [first]
    if (m, n, k) in WEAK_KERNELS:
        return list(dict.fromkeys(found + WEAK_KERNELS[m, n, k]()))
    if m <= 192:
        found += few_rows(m, n, k)
        found += heuristics.balanced_configurations(problem)[:2]
    else:
        found += wide_clusters(first) + small_tiles(m, n) + filled_rounds(m, n, order)
    found += heuristics.ranked_hopper_kernels(problem, most=2)
    return list(dict.fromkeys(found + balanced_tiles(m, n)))[:MOST]


def wide_clusters(cfg):
    """A configuration of the persistent kernel with blocks that share more of their loads."""
    if not hasattr(cfg, "pingpong") or not hasattr(cfg, "cluster") or hasattr(cfg, "split"):
        return []
    return [replace(cfg, cluster=shape) for shape in ((2, 2), (4, 1), (1, 2))]


def few_rows(m, n, k):
    """Configurations of the kernel for few rows, which have blocks share them, or K."""
    columns = -(-m // 8) * 8
    found = []
    for rows in (64, 128):
        tiles = -(-n // rows)
        for blocks in (1, 2):
            for sharing in (4, 2):
                if 0.5 <= tiles / PROCESSORS <= 12:
                    found.append(split(rows, columns, 1, blocks, True, sharing))
        if tiles <= PROCESSORS:
            found.append(split(rows, columns, 2, 1, True))
            found.append(split(rows, columns, 4, 2, True))
    found.append(split(256, columns, 1, 1, True, 2))
    return [cfg for cfg in found if cfg.stages >= 2 and k // 64 >= 4 * cfg.split]


def filled_rounds(m, n, order):
    """Tiles of the persistent kernel in the order of how little of the multiprocessors' time the
    last round and the tiles' ends leave idle, by pairs.
    """
    unit = 32 if order[1] == "n" else 8
    timed = []
    for rows, consumers, pingpong, widest in (
        (256, 2, False, 192),
        (128, 2, False, 256),
        (192, 3, False, 192),
        (128, 2, True, 128),
        (64, 2, True, 256),
    ):
        for columns in range(max(64, unit), widest + 1, unit):
            tiles = -(-m // rows) * -(-n // columns)
            rounds = -(-tiles // PROCESSORS)
            loads = rows / 2 + columns / 2 + min(rows, columns) / 2
            slots = 1 if rows == 192 and columns > 160 else 2
            halves = columns % 16 == 0 and (rows <= columns or -(-m // rows) % 2 == 0)
            cluster = (2, 1) if halves else (1, 2)
            cfg = staged(rows, columns, consumers, pingpong, cluster, slots=slots)
            timed.append((rounds * max(rows * columns / 32, 2.4 * loads), cfg))
    return [cfg for _, cfg in sorted(timed, key=lambda found: found[0])][:7]


def small_tiles(m, n):
    """Configurations of the kernel for few rows with blocks that share B, two on a multiprocessor
    where their stages are enough, so that the next kernel's begin before these end.
    """
    found = []
    for rows, columns in ((64, 96), (64, 128), (128, 64), (128, 96), (128, 128)):
        tiles = -(-m // rows) * -(-n // columns)
        if tiles > 2 * PROCESSORS:
            continue
        for blocks in (1, 2):
            made = split(rows, columns, sharing=2, blocks=blocks)
            if made.stages >= 3:
                found.append(made)
    return found


def balanced_tiles(m, n):
    """Tiles of `hopper.gemm` that are as many as multiprocessors, or a little fewer."""
    from basedsl_cute.ops.hopper.config import Config

    found = []
    for rows, consumers, pingpong, widest in (
        (64, 2, True, 256),
        (128, 2, False, 256),
        (192, 3, False, 160),
    ):
        if rows >= m + 64:
            continue
        across = -(-m // rows)
        for rounds in (1, 2):
            along = PROCESSORS * rounds // across
            if not along:
                continue
            columns = -(-n // along)
            columns = -(-columns // 16) * 16
            if not 32 <= columns <= widest:
                continue
            stages = min(
                10, (SHARED_MEMORY - 3072 - 2 * consumers * 8192) // ((rows + columns) * 128)
            )
            tile = (rows, columns, 64)
            options = {"along_m": pingpong, "deferred": not pingpong}
            found.append(Config(tile, stages, consumers, pingpong, **options))
    return found


def compile_some(work, first, step):
    """Compile a share of the kernels, by a call of each."""
    import torch

    from basedsl_cute.ops import matmul

    seen = {}
    for shape, configs in work:
        for cfg in configs:
            seen.setdefault((*shape[:2], cfg), shape)
    for (dtype, order, cfg), shape in list(seen.items())[first::step]:
        _, _, _, m, n, k = shape
        kind = getattr(torch, dtype)
        a = torch.empty((k, m) if order[0] == "m" else (m, k), device="cuda", dtype=kind)
        b = torch.empty((k, n) if order[1] == "n" else (n, k), device="cuda", dtype=kind)
        c = torch.empty((m, n), device="cuda", dtype=kind)
        try:
            matmul(
                a.mT if order[0] == "m" else a, b if order[1] == "n" else b.mT, out=c, config=cfg
            )
        except Exception as error:
            print(f"{cfg}: {str(error).splitlines()[0]}", flush=True)
    return 0


def measured(torch, shape, configs):
    """Microseconds of cuBLAS and of each configuration that runs, medians of turns."""
    run = Product(torch, *shape, None)
    every = list(zip(run.inputs, run.results, strict=True))
    graphs, errors = {"torch": graph_of(torch, run.theirs, every)}, {}
    for cfg in configs:
        run.config = cfg
        try:
            errors[cfg] = run.error()
            graphs[cfg] = graph_of(torch, run.ours, every)
        except Exception as error:
            print(f"  {config_text(cfg)}: {str(error).splitlines()[0]}")
    several = {
        name: max(1, round(MICROSECONDS * 1e-6 / seconds(graph.replay, 1)))
        for name, graph in graphs.items()
    }
    times = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            times[name].append(seconds(graph.replay, several[name]) / len(every))
    found = {name: statistics.median(each) * 1e6 for name, each in times.items()}
    best = min((cfg for cfg in graphs if cfg != "torch"), key=found.get)
    return {
        "product": run.facts["product"],
        "torch_kernels": kernels_of(torch, run.theirs, every[0]),
        "shape": shape,
        "torch": found.pop("torch"),
        "chosen": found.get(configs[0]),
        "best": found[best],
        "best_config": str(best),
        "error": max(errors.values()),
        "times": {str(cfg): took for cfg, took in found.items()},
    }


def kernels_of(torch, call, operands):
    """The names of the kernels of a call; those of cuBLAS tell tiles, stages and clusters."""
    (a, b), out = operands
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call(a, b, out)
        torch.cuda.synchronize()
    return [event.key for event in profile.key_averages() if event.self_device_time_total]


def line(row):
    ours = row["chosen"] or float("nan")
    return (
        f"{row['product']:<34} torch {row['torch']:8.2f}  chosen {row['torch'] / ours:6.3f}  best "
        f"{row['torch'] / row['best']:6.3f}  error {row['error']:.2f}  {row['best_config']}  "
        f"{' '.join(row['torch_kernels'])}"
    )


if __name__ == "__main__":
    sys.exit(main())
