"""`ops.matmul` as users call it, against PyTorch, away from the large squares of gemm.py.

    python bench/gpu/shapes.py [--out rows.json] [--only TEXT ...] [--check] [--config "split()"]

Decoding (few rows, weights of thousands), a long K for a small result, batches of attention, odd
extents. Inputs are fresh random normal numbers, as many copies in turn as are beyond the L2 cache;
outputs are filled with NaN before the checked call and compared with float64. "kernel" is the ratio
of 200 calls in a row, recorded into a CUDA graph: what the device takes under a load that lasts.
`--short` and `--random` take rows of 3 ms, which end before a GPU is at its power limit. "alone" is
that of launches timed one by one, "calls" that of plain calls in a row with new results, where the
host may be what takes longest. "GB/s" counts operands and result once each. The 8-bit peer is
`torch._scaled_mm`. `--check` times nothing; `--part 2 7` takes the third of seven parts. `--config`
is that of a kernel in `ops`, by the name "hopper", "split", "parts" or "warp"; `--tune` measures
what `config="tune"` finds. `--random 200` takes products drawn from those of transformers instead,
which has a shorter timing, and ends with the worst and the geometric mean of the ratios; `--batched
60` takes as many of batches, of heads and of experts. `--seed` names the draw. `--float64` takes
products of Float64 instead, by FP64 tensor cores.
"""

import argparse
import json
import logging
import math
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gemm import config_text, seconds

# dtype, contiguous modes of A and B ("kk" a linear layer, "kn" row-major arrays and the gradient by
# a layer's input, "mn" the gradient by its weight), batches, M, N, K
SHAPES = [
    ("float16", "kk", 1, 1, 4096, 4096),
    ("float16", "kk", 1, 8, 4096, 4096),
    ("float16", "kk", 1, 16, 4096, 4096),
    ("bfloat16", "kk", 1, 16, 14336, 4096),
    ("bfloat16", "kk", 1, 16, 4096, 14336),
    ("float16", "kn", 1, 16, 4096, 4096),
    ("float16", "kk", 1, 32, 6144, 4096),
    ("float16", "kk", 1, 64, 4096, 4096),
    ("float16", "kn", 1, 64, 14336, 4096),
    ("float16", "kk", 1, 128, 4096, 4096),
    ("float16", "kk", 1, 128, 14336, 4096),
    ("float16", "kn", 1, 128, 4096, 14336),
    ("float16", "kk", 1, 256, 4096, 4096),
    ("float8_e4m3fn", "kk", 1, 16, 4096, 4096),
    ("float8_e4m3fn", "kk", 1, 64, 14336, 4096),
    ("float8_e4m3fn", "kk", 1, 128, 4096, 14336),
    ("float16", "kk", 1, 64, 64, 65536),
    ("float16", "kk", 1, 128, 128, 8192),
    ("float16", "kn", 1, 128, 128, 65536),
    ("float16", "kk", 1, 256, 256, 8192),
    ("float16", "kk", 1, 512, 512, 8192),
    ("bfloat16", "kn", 1, 512, 512, 65536),
    ("float8_e4m3fn", "kk", 1, 512, 512, 8192),
    ("float16", "kk", 1, 1536, 1536, 8192),
    ("bfloat16", "kk", 1, 1024, 3072, 8192),
    ("float16", "kk", 1, 1000, 1000, 1000),
    ("float16", "kn", 1, 1000, 1000, 16384),
    ("float16", "kk", 1, 512, 512, 512),
    ("float16", "kk", 1, 1024, 1024, 1024),
    ("float16", "kk", 1, 2048, 12288, 4096),
    ("bfloat16", "kk", 1, 1024, 50257, 768),
    ("bfloat16", "kk", 1, 16, 50257, 4096),
    ("float16", "kn", 1, 1024, 50257, 768),
    ("float16", "kk", 1, 8192, 8192, 64),
    ("float16", "kk", 64, 512, 512, 64),
    ("float16", "kn", 64, 512, 64, 512),
]
FLOAT64 = [
    ("float64", "kk", 1, 2048, 2048, 2048),
    ("float64", "kn", 1, 4096, 4096, 4096),
    ("float64", "kk", 1, 128, 4096, 4096),
]
WEAK = ["1536x1536x8192", "128x128x65536", "512x512x65536", "64x14336x4096", "1000x1000x1000"]
BEYOND_L2 = 2**28  # bytes that the copies of the inputs take together
MOST_COPIES = 128


def main():
    options = arguments()
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    torch.manual_seed(int(time.time()))
    rows = []
    print(header(), flush=True)
    if options.log:
        logging.getLogger("basedsl.cute.matmul").addHandler(logging.FileHandler(options.log))
        logging.getLogger("basedsl.cute.matmul").setLevel("DEBUG")
    begin = time.time()
    for shape in chosen(options):
        if time.time() - begin > options.seconds:
            print(f"no time for the others after {options.seconds:.0f} s")
            break
        run = Product(torch, *shape, "tune" if options.tune else options.config)
        row = run.facts | {"error": run.error()}
        if not options.check:
            row |= run.timed(bool(options.random or options.batched or options.short))
        rows.append(row)
        print(line(row), flush=True)
        del run
    if not options.check:
        print(summary(rows))
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 1 if any(not row["error"] < 1 for row in rows) else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", nargs="*", help="shapes as printed, or parts of them")
    parser.add_argument("--check", action="store_true", help="compile and compare, time nothing")
    parser.add_argument("--part", nargs=2, type=int, default=(0, 1))
    parser.add_argument("--random", type=int, help="how many products of transformers")
    parser.add_argument("--batched", type=int, help="how many products of batches")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no product after")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--float64", action="store_true", help="products of Float64")
    parser.add_argument("--tune", action="store_true", help='config="tune"')
    parser.add_argument("--short", action="store_true", help="calls in a row alone, as of --random")
    parser.add_argument("--weak", action="store_true", help="the shapes below cuBLAS on 2026-11-21")
    parser.add_argument("--log", help="a file for the times of all configurations, with --tune")
    parser.add_argument("--config", help="a configuration, as Python: hopper(stages=3)")
    return parser.parse_args()


def chosen(options):
    first, parts = options.part
    every = drawn(options.random, options.seed) if options.random else SHAPES
    every = drawn_batched(options.batched, options.seed) if options.batched else every
    every = FLOAT64 if options.float64 else every
    only = WEAK if options.weak else options.only
    fits = [s for s in every if not only or any(t in name_of(*s) for t in only)]
    return fits[first::parts]


def drawn(count, seed):
    """Products of transformers: hidden sizes, layers and tokens as models and their servers have
    them, forward and backward, whole or divided over GPUs.
    """
    draw = random.Random(seed)
    found = []
    while len(found) < count:
        hidden = draw.choice((768, 1024, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192))
        wide = draw.choice((4 * hidden, 256 * round(8 * hidden / 3 / 256), 7 * hidden // 2))
        heads = hidden + 2 * draw.choice((hidden, hidden // 4, hidden // 8))
        classes = draw.choice((32000, 50304, 128256, 151936))
        n, k = draw.choice(
            ((heads, hidden), (hidden, hidden), (wide, hidden), (2 * wide, hidden), (hidden, wide),
             (classes, hidden))
        )  # fmt: skip
        split = draw.choice((1, 1, 2, 4, 8))
        if k > n:
            k //= split
        elif n != classes:
            n //= split
        few, many = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192), (256, 512, 1024, 2048, 4096, 8192)
        m = draw.choice(draw.choice((few, many)))
        order = "kk" if m < 256 else draw.choice(("kk", "kk", "kn", "mn"))
        if order == "kn":  # dX = dY W
            n, k = k, n
        elif order == "mn":  # dW = dY^T X
            m, k = n, m
            n = hidden
        kind = draw.choice(("float16", "bfloat16"))
        shape = kind, order, 1, m, n, k
        if m * n * k < 1e12 and m * n < 3e8 and n * k < 3e8 and shape not in found:
            found.append(shape)
    return found


def drawn_batched(count, seed):
    """Products of batches, as attention without a kernel of its own has of its heads, forward and
    backward, and as layers of experts have, each with its tokens.
    """
    draw = random.Random(seed)
    found = []
    while len(found) < count:
        if draw.random() < 0.5:
            batches = draw.choice((1, 2, 4, 8)) * draw.choice((8, 12, 16, 32))
            queries, keys = (draw.choice((128, 197, 256, 512, 1024, 2048)) for _ in range(2))
            keys, head = draw.choice((queries, keys)), draw.choice((64, 64, 80, 96, 128, 128))
            keys += -keys % 8
            order, m, n, k = draw.choice(
                (
                    ("kk", queries, keys, head),  # S = Q K^T
                    ("kn", queries, head, keys),  # P V
                    ("mn", keys, head, queries),  # dK = dS^T Q
                )
            )
        else:
            batches = draw.choice((4, 8, 8, 16, 32, 64))
            m = draw.choice((16, 32, 64, 96, 128, 256, 512, 1024, 2048))
            n, k = draw.choice(((1024, 2048), (2048, 1024), (1408, 2048), (4096, 1536)))
            order = draw.choice(("kk", "kk", "kn", "mn"))
            if order == "mn":  # dW = dY^T X
                m, n, k = n, k, m
        kind = draw.choice(("float16", "bfloat16"))
        shape = kind, order, batches, m, n, k
        if batches * max(m * n * k / 2e11, m * n / 1e8, n * k / 1e8) < 1 and shape not in found:
            found.append(shape)
    return found


def summary(rows):
    """The number of products, the worst ratio, and the geometric mean."""
    ratios = [row["torch"]["kernel"] / row["ours"]["kernel"] for row in rows]
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    below = sum(ratio < 1 for ratio in ratios)
    return f"{len(ratios)} products, worst {min(ratios):.3f}, mean {mean:.3f}, {below} below 1"


def name_of(dtype, order, batches, m, n, k):
    return f"{dtype} {order} {f'{batches} of ' if batches > 1 else ''}{m}x{n}x{k}"


def header():
    return (
        f"{'product':<36} {'us':>8} {'torch':>8} {'GB/s':>6} {'TFLOP/s':>7} {'kernel':>7} "
        f"{'alone':>6} {'calls':>6} {'error':>6}  what runs"
    )


def line(row):
    text = f"{row['product']:<36}"
    if "ours" not in row:
        return f"{text} {row['error']:61.2f}  {row['runs']}"
    ours = row["ours"]
    return (
        f"{text} {ours['kernel']:8.2f} {row['torch']['kernel']:8.2f} "
        f"{row['bytes'] / ours['kernel'] / 1e3:6.0f} {row['flops'] / ours['kernel'] / 1e6:7.1f} "
        + " ".join(f"{row['torch'][how] / ours[how]:6.3f}" for how in ours)
        + f" {row['error']:6.2f}  {row['runs']}"
    )


class Product:
    """Copies of the operands of one product, and each contender's call."""

    def __init__(self, torch, dtype, order, batches, m, n, k, config):
        self.torch = torch
        kind = getattr(torch, dtype)
        is_narrow = kind.itemsize == 1
        self.out = torch.bfloat16 if is_narrow else kind
        size = batches * ((m + n) * k * kind.itemsize + m * n * self.out.itemsize)
        batch = (batches,) if batches > 1 else ()
        self.inputs = []
        for _ in range(max(2, min(MOST_COPIES, -(-BEYOND_L2 // size)))):
            shape = (k, m) if order[0] == "m" else (m, k)
            a = torch.randn(*batch, *shape, device="cuda").to(kind)
            a = a.mT if order[0] == "m" else a
            shape = (k, n) if order[1] == "n" else (n, k)
            b = torch.randn(*batch, *shape, device="cuda").to(kind)
            self.inputs.append((a, b if order[1] == "n" else b.mT))
        self.results = [
            torch.full((*batch, m, n), float("nan"), device="cuda", dtype=self.out)
            for _ in self.inputs
        ]
        self.config = named(config)
        one = torch.ones((), device="cuda")
        self.scales = {"scale_a": one, "scale_b": one} if is_narrow else None
        self.facts = {"product": name_of(dtype, order, batches, m, n, k), "bytes": size}
        self.facts |= {"flops": 2 * batches * m * n * k}

    def ours(self, a, b, out=None):
        from basedsl_cute.ops import matmul

        return matmul(a, b, out=out, out_dtype=self.out, config=self.config)

    def theirs(self, a, b, out=None):
        torch = self.torch
        if self.scales is None:
            return torch.matmul(a, b, out=out)
        return torch._scaled_mm(
            a, b, **self.scales, out_dtype=self.out, use_fast_accum=True, out=out
        )

    def error(self):
        """The largest error of ours in units of what rounding the result and sums may cost."""
        a, b = self.inputs[0]
        c = self.results[0]
        self.ours(a, b, c)
        self.torch.cuda.synchronize()
        self.facts["runs"] = what_ran()
        k = a.shape[-1]
        sums = 1e-3 * k**0.5 * 2**-4 + 1e-5 * k
        if a.dtype.itemsize == 1:  # see `error_of` in gemm.py
            sums += k / 32 * (k**0.5 + 16) * 2**-13
        if is_large(a, b):  # by the library alone: float64 would take most of the time
            exact = self.torch.matmul(a.float(), b.float()).double()
        else:
            exact = a.double() @ b.double()
        allowed = self.torch.finfo(c.dtype).eps * exact.abs() + sums
        error = ((c.double() - exact).abs() / allowed).max().item()
        return error if error == error else float("inf")

    def timed(self, is_short=False):
        """Microseconds of a product for both, in each way of calling them; in a row alone if it is
        to be short.
        """
        calls = {"ours": self.ours, "torch": self.theirs}
        every = list(zip(self.inputs, self.results, strict=True))
        whole = {name: graph_of(self.torch, call, every) for name, call in calls.items()}
        count = len(every)
        once = {
            name: {
                "kernel": (whole[name].replay, max(1, 200 // count), 11, count),
                "alone": (Turns(call, every), 1, 60, 1),
                "calls": (Turns(call, [(x, None) for x in self.inputs]), 60, 7, 1),
            }
            for name, call in calls.items()
        }
        found = {name: {} for name in calls}
        names = list(calls)
        for how in ("kernel",) if is_short else ("kernel", "alone", "calls"):
            times = {name: [] for name in names}
            if is_short:
                several = max(1, round(3e-3 / seconds(whole["torch"].replay, 1)))
            for _ in range(7 if is_short else once["ours"][how][2]):
                random.shuffle(names)
                for name in names:
                    run, launches, _, each = once[name][how]
                    launches = several if is_short else launches
                    times[name].append(seconds(run, launches) / each)
            for name in names:
                found[name][how] = statistics.median(times[name]) * 1e6
        return found


class Turns:
    """A call with other operands each time."""

    def __init__(self, call, operands):
        self.call, self.operands, self.at = call, operands, 0
        for (a, b), out in operands[:2]:
            call(a, b, out)

    def __call__(self):
        (a, b), out = self.operands[self.at]
        self.at = (self.at + 1) % len(self.operands)
        self.call(a, b, out)


def is_large(a, b):
    """True if a product in Float64 would take too long."""
    return a.shape[-2] * a.shape[-1] * b.shape[-1] > 2**36


def graph_of(torch, call, operands):
    """A CUDA graph of the call with each of the operands."""
    for (a, b), out in operands[:2]:
        call(a, b, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for (a, b), out in operands:
            call(a, b, out)
    return graph


def named(config):
    """A `Config` of one of the kernels, by the kernel's name."""
    if config is None or config == "tune":
        return config
    from basedsl_cute.ops.ampere import gemm as ampere_gemm
    from basedsl_cute.ops.hopper import gemm as hopper_gemm
    from basedsl_cute.ops.hopper import parallel_split_k, split_k_gemm

    kernels = {
        "hopper": hopper_gemm,
        "split": split_k_gemm,
        "parts": parallel_split_k,
        "warp": ampere_gemm,
    }
    return eval(config, {name: kernel.Config for name, kernel in kernels.items()})


def what_ran():
    """The kernel and the configuration of the last plan."""
    from basedsl_cute.ops.gemm import matmul as multiply

    problem = list(multiply._plans.values())[-1].problem
    if problem is None:
        return "nothing"
    config = problem.config
    if hasattr(config, "parts"):
        return f"{config.parts} parts of K by {type(config.gemm).__module__.split('.')[-1]} " + (
            config_text(config.gemm)
        )
    return f"{problem.kernel} {config_text(config)}"


if __name__ == "__main__":
    sys.exit(main())
