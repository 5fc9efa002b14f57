"""Times of many configurations for many products: what bench/gpu/fit_choice.py fits the model to.

    python bench/gpu/choice_timings.py --out rows.json [--seeds 3 4 5 6] [--products 300]
        [--without timings.jsonl.gz ...] [--only kn512x512x65536 ...]

Products of transformers are drawn as by `shapes.py --random`. Of each, what today's model finds
fastest is measured, at most two of a kind (kernel, rows of a tile, cluster, slices of K), and some
of those that it finds up to 1.3 times as slow, beside cuBLAS. All are launched from CUDA graphs, in
turns, with operands that exceed the L2 cache, and compared with a product in Float32. Processes
compile a share each, then they measure in turn, the GPU being one's alone: 4,300 configurations of
356 products take two minutes with 16 cores. `--validate` measures what is chosen and the next of
another kind alone, and tells worst and mean. `--without` leaves out products of which there are
timings, `--only` takes these products before the drawn ones, as `risky_products.py` names them.
"""

import argparse
import fcntl
import gzip
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shapes import SHAPES, drawn, drawn_batched, name_of

PROCESSORS = 132
CLOSE, FARTHER = 1.25, 1.3  # times the shortest modelled time
OF_A_KIND = 2
ROUNDS = 6
MICROSECONDS = 900  # of one timing
BEYOND_L2 = 2**28  # bytes that the copies of the operands take together
KEPT = 6e9  # bytes that a process may keep while others measure


def main():
    options = arguments()
    if options.worker is not None:
        return measure_share(options)
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *sys.argv, "--folder", folder, "--begin", str(begin)]
        processes = [
            subprocess.Popen([*command, "--worker", str(i)]) for i in range(options.workers)
        ]
        for process in processes:
            try:
                process.wait(max(0.1, begin + options.seconds + 5 - time.time()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        lines = [
            line for file in Path(folder).glob("rows*") for line in file.read_text().splitlines()
        ]
    ended = sum(process.returncode != 0 for process in processes)
    if ended:
        print(f"{ended} of {options.workers} processes failed or were out of time")
    rows = sorted(map(json.loads, lines))
    Path(options.out).write_text(json.dumps([row[1:] for row in rows]))
    if options.validate:
        for row in rows:
            print(f"{name_of('', *row[1:6]):36} {row[6]:8.2f} {row[6] / row[7][0][-1]:6.3f}")
    ratios = [row[6] / row[7][0][-1] for row in rows]
    print(
        f"{len(rows)} products after {time.time() - begin:.0f} s; cuBLAS by the chosen: worst "
        f"{min(ratios):.3f}, mean {math.exp(statistics.mean(map(math.log, ratios))):.3f}, "
        f"{sum(x < 0.97 for x in ratios)} below 0.97"
    )
    return 1 if ended else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[3, 4, 5, 6])
    parser.add_argument("--products", type=int, default=300)
    parser.add_argument("--drawn", type=int, default=200, help="by each seed")
    parser.add_argument("--batched", type=int, default=0, help="of batches, by each seed")
    parser.add_argument("--without", nargs="*", type=Path, default=[], help="files of timings")
    parser.add_argument("--only", nargs="*", default=[], help="products, as kn512x512x65536")
    parser.add_argument("--near", type=int, default=9, help="configurations by the model")
    parser.add_argument("--random", type=int, default=3, help="others that are not much slower")
    parser.add_argument("--longest", type=float, default=500, help="microseconds, estimated")
    parser.add_argument("--validate", action="store_true", help="what is chosen, and the next one")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--compile-seconds", type=float, default=80)
    parser.add_argument("--seconds", type=float, default=170)
    for hidden, kind in (("--worker", int), ("--folder", Path), ("--begin", float)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    return parser.parse_args()


def products(options):
    """The products to measure, each once, without elements' types, which make no difference."""
    every = SHAPES if options.validate else []
    every = every + [s for seed in options.seeds for s in drawn(options.drawn, seed)]
    every += [s for seed in options.seeds for s in drawn_batched(options.batched, seed)]
    if not options.validate:
        random.Random(options.seeds[0]).shuffle(every)
    wide = [s for s in every if s[0] != "float8_e4m3fn" and s[4] % 8 == 0]
    short = [s[1:] for s in wide if estimated_microseconds(*s[1:]) < options.longest]
    timed_before = {
        tuple(json.loads(line)[:5]) for path in options.without for line in gzip.open(path, "rt")
    }
    named = []
    for text in options.only:
        order, *extents = re.fullmatch(r"(kk|kn|mk|mn)(\d+)x(\d+)x(\d+)", text).groups()
        named.append((order, 1, *map(int, extents)))
    drawn_ones = [shape for shape in short if shape not in timed_before]
    return list(dict.fromkeys(named + drawn_ones))[: options.products]


def estimated_microseconds(order, batches, m, n, k):
    """The time of a product at 700 TFLOP/s, which those take that memory does not bound."""
    return 2 * batches * m * n * k / 7e8


def as_the_model_takes(order, batches, m, n, k):
    """The product as `ops.hopper.heuristics` and as `ops.hopper.model` describe it."""
    from basedsl_cute.ops.hopper import heuristics, model

    of_a, of_b = order[0] == "k", order[1] == "k"
    of_longer = (of_a, of_b) if m > n else (of_b, of_a)
    problem = heuristics.Problem(m, n, k, batches, 16, 16, PROCESSORS, True, False, *of_longer)
    return problem, model.Products(m, n, k, batches, int(of_a), int(of_b), PROCESSORS)


def configurations(shape, options, draw):
    """The configurations to measure, what is chosen first."""
    from basedsl_cute.ops.hopper import candidates, heuristics, model

    problem, facts = as_the_model_takes(*shape)
    found = candidates.candidates(problem)
    times = model.modelled_time(found.table, facts)
    chosen = heuristics.choose_hopper_kernel(problem)[1]
    picked, kinds = [chosen], {kind_of(chosen): OF_A_KIND if options.validate else 1}
    near = 1 if options.validate else options.near
    for row in times.argsort():
        if len(picked) > near or times[row] > CLOSE * times.min():
            break
        cfg = found.at(int(row), problem)
        if cfg not in picked and kinds.get(kind_of(cfg), 0) < OF_A_KIND:
            kinds[kind_of(cfg)] = kinds.get(kind_of(cfg), 0) + 1
            picked.append(cfg)
    others = [int(row) for row in times.argsort() if times[row] < FARTHER * times.min()]
    count = 0 if options.validate else min(options.random, len(others))
    return list(dict.fromkeys(picked + [found.at(i, problem) for i in draw.sample(others, count)]))


def kind_of(cfg):
    parts, cfg = getattr(cfg, "parts", 1), getattr(cfg, "gemm", cfg)
    if hasattr(cfg, "split"):
        return parts, cfg.tile[0], cfg.split, cfg.blocks_per_sm, cfg.sharing, cfg.swap
    return parts, cfg.tile[0], cfg.pingpong, cfg.cluster, cfg.swap


def shares(options):
    """Each process measures a share: each kernel is compiled by few of them, and all do as much."""
    draw = random.Random(options.seeds[0])
    load = [0.0] * options.workers
    kernels = [set() for _ in load]
    found = [[] for _ in load]
    for number, shape in enumerate(products(options)):
        configs = configurations(shape, options, draw)
        keys = {(shape[0], str(cfg)) for cfg in configs}
        costs = [
            0.6 * done + 0.35 * len(keys - own) for done, own in zip(load, kernels, strict=True)
        ]
        i = costs.index(min(costs))
        load[i] += 0.35 * len(keys - kernels[i]) + 0.02 * len(keys)
        kernels[i] |= keys
        found[i].append((number, shape, configs))
    return found


def measure_share(options):
    """Compile a process's share, and measure it in turn with the others."""
    share = shares(options)[options.worker]
    import torch

    from basedsl_cute.ops import matmul

    torch.manual_seed(options.worker)
    ready = []
    for number, shape, configs in share:
        if time.time() - options.begin > options.compile_seconds:
            break
        a, b, c = operands(torch, shape, 1, torch.empty)
        for cfg in configs:  # each has a kernel: an error is a defect of the candidates
            matmul(a[0], b[0], out=c[0], config=cfg)
        ready.append((number, shape, configs))
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    (options.folder / f"ready{options.worker}").touch()
    while len(list(options.folder.glob("ready*"))) < options.workers:
        if time.time() - options.begin > options.compile_seconds + 4:
            break
        time.sleep(0.05)
    with (options.folder / "lock").open("w") as lock:
        for number, shape, configs in ready:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                if time.time() - options.begin > options.seconds:
                    return 0
                row = measured(torch, shape, configs)
                with (options.folder / f"rows{options.worker}").open("a") as file:
                    file.write(json.dumps([number, *shape, *row]) + "\n")
                torch.cuda.synchronize()
            finally:
                if torch.cuda.memory_reserved() > KEPT:
                    torch.cuda.empty_cache()
                fcntl.flock(lock, fcntl.LOCK_UN)
            time.sleep(0.003)  # so that another one gets its turn
    return 0


def operands(torch, shape, count, make):
    """Copies of A and B of Float16, and of the result."""
    order, batches, m, n, k = shape
    batch = (batches,) if batches > 1 else ()

    def matrices(rows, columns, is_turned):
        extents = (columns, rows) if is_turned else (rows, columns)
        x = make(count, *batch, *extents, device="cuda", dtype=torch.float16)
        return x.mT if is_turned else x

    a, b = matrices(m, k, order[0] == "m"), matrices(k, n, order[1] == "k")
    return a, b, torch.empty(count, *batch, m, n, device="cuda", dtype=torch.float16)


def measured(torch, shape, configs):
    """The microseconds of cuBLAS, and the numbers and microseconds of each configuration."""
    from basedsl_cute.ops import matmul
    from basedsl_cute.ops.hopper import model

    _, batches, m, n, k = shape
    count = max(2, min(128, -(-BEYOND_L2 // (2 * batches * (m * k + n * k + m * n)))))
    every = list(zip(*operands(torch, shape, count, torch.randn), strict=True))
    a, b, c = every[0]
    exact = a.float() @ b.float()
    allowed = torch.finfo(c.dtype).eps * exact.abs() + 1e-3 * k**0.5 * 2**-4 + 1e-5 * k
    graphs = {None: captured(torch, lambda a, b, c: torch.matmul(a, b, out=c), every)}
    for cfg in configs:
        c.fill_(float("nan"))
        matmul(a, b, out=c, config=cfg)
        if not ((c.float() - exact).abs() <= allowed).all():
            raise ValueError(f"{shape} {cfg} is wrong")
        graphs[cfg] = captured(
            torch, lambda a, b, c, cfg=cfg: matmul(a, b, out=c, config=cfg), every
        )
    several = max(1, round(MICROSECONDS / timed(torch, graphs[None], 1)))
    times = {cfg: [] for cfg in graphs}
    for _ in range(ROUNDS):
        for cfg in random.sample(list(graphs), len(graphs)):
            times[cfg].append(timed(torch, graphs[cfg], several) / count)
    table = model.columns_of(configs)
    rows = [
        [*(int(table[name][i]) for name in model.COLUMNS), statistics.median(times[cfg])]
        for i, cfg in enumerate(configs)
    ]
    return statistics.median(times[None]), rows


def captured(torch, call, every):
    """A CUDA graph of the call with each of the operands."""
    for given in every[:2]:
        call(*given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for given in every:
            call(*given)
    return graph


def timed(torch, graph, launches):
    """Microseconds of a launch, of several that wait for the GPU."""
    start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
    torch.cuda._sleep(300_000)
    start.record()
    for _ in range(launches):
        graph.replay()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) * 1e3 / launches


if __name__ == "__main__":
    sys.exit(main())
