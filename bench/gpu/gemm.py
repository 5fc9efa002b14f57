"""The Hopper GEMM against cuBLAS and a persistent matrix product in Triton, in one run.

    python bench/gpu/gemm.py [--out rows.json] [--dtype float16 ...] [--shape M N K ...]

Each dtype runs in a process of its own with a time limit. Inputs are fresh random normal numbers;
outputs are filled with NaN before the checked call and compared with float64. The configuration of
each shape is `choose_config`'s, or `--config`. Timing: launches in a row between
two events with the device kept busy before, contenders in turns, medians over the rounds; ratios
are those of medians. "alone" is the ratio to cuBLAS of launches that are timed one by one, "called"
of such on an idle device, where what the host takes for a call counts. Errors count what rounding
of the output and of the sums may cost as 1. The 8-bit peer is `torch._scaled_mm` with scales on the
device, which ours applies in an epilogue. Triton takes turns with ours apart from cuBLAS: where its
launches leave the device idle, the clock is higher for whoever comes next.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from goals import GEMM, SCALED_GEMM

SHAPES = list(GEMM)
RAGGED = [(1000, 776, 528), (128, 256, 64), (4100, 4104, 16)]
DTYPES = ("float16", "bfloat16", "float8_e4m3fn")
TIME_LIMIT = 100  # seconds for one dtype
SINGLE = ("_alone", "_called")


def main():
    options = arguments()
    if options.child:
        measure(options)
        return 0
    rows, failed = [], False
    for dtype in options.dtype or DTYPES:
        found, failure = run_child(dtype, options)
        rows += found
        failed = failed or bool(failure)
        if options.out:
            Path(options.out).write_text(json.dumps(rows, indent=1))
    table(rows)
    return 1 if failed or any(not row["error"] < 1 for row in rows) else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--dtype", action="append", choices=DTYPES)
    parser.add_argument("--shape", action="append", nargs=3, type=int)
    parser.add_argument("--config", help="arguments of Config, as Python: dict(stages=3)")
    parser.add_argument("--no-triton", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_child(dtype, options):
    """The rows of one dtype: what its process printed before it ended, or was ended."""
    command = [sys.executable, __file__, "--child", dtype]
    for shape in options.shape or ():
        command += ["--shape", *map(str, shape)]
    command += ["--config", options.config] if options.config else []
    command += ["--no-triton"] if options.no_triton else []
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            out, _ = process.communicate(timeout=TIME_LIMIT)
            failure = f"exit status {process.returncode}" if process.returncode else None
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            failure = f"not done after {TIME_LIMIT} s"
    for line in out.splitlines():
        if line.startswith("{"):
            rows.append(json.loads(line))
        else:
            print(f"{dtype}: {line}", flush=True)
    if failure:
        print(f"{dtype}: {failure}", flush=True)
    return rows, failure


def table(rows):
    """The rows as text."""
    print(
        f"{'dtype':<14} {'M x N x K':<18} {'TFLOP/s':>8} {'cuBLAS':>7} {'ratio':>6} {'goal':>5} "
        f"{'alone':>6} {'called':>6} {'Triton':>7} {'ratio':>6} {'error':>6} {'cuBLAS':>6}  "
        "configuration"
    )
    kernels = {}
    for row in rows:
        shape = "x".join(map(str, row["shape"]))
        state = "" if row["error"] < 1 else "  WRONG"
        if "ours" not in row:
            print(f"{row['dtype']:<14} {shape:<18} checked only {row['error']:22.2f}{state}")
            continue
        kernels.setdefault(row["kernel"], row)
        is_narrow = row["dtype"].startswith("float8")
        goal = SCALED_GEMM if is_narrow else GEMM.get(tuple(row["shape"]), 1.0)
        ratio, alone, called = (row[f"ours{x}"] / row[f"cublas{x}"] for x in ("", *SINGLE))
        if ratio < goal:
            state = f"  below its goal{state}"
        against = f"{'-':>7} {'-':>6}"
        if "triton" in row:
            against = f"{row['triton']:7.1f} {row['ours_to_triton'] / row['triton']:6.3f}"
        print(
            f"{row['dtype']:<14} {shape:<18} {row['ours']:8.1f} {row['cublas']:7.1f} {ratio:6.3f} "
            f"{goal:5.2f} {alone:6.3f} {called:6.3f} {against} {row['error']:6.2f} "
            f"{row['peer_error']:6.2f}  {row['config']}{state}"
        )
    for name, row in kernels.items():
        print(f"kernel {name}: {row['resources']}")


# One dtype ---------------------------------------------------------------------------------------


def measure(options):
    from basedsl_cute.device import driver

    if not driver.is_available():
        print("skipped, no CUDA driver here")
        return
    import torch

    dtype = getattr(torch, options.child)
    kernels = Kernels(dtype, options.config)
    torch.manual_seed(int(time.time()))
    shapes = [tuple(shape) for shape in options.shape or SHAPES]
    for shape in [*RAGGED, *shapes]:
        run = Problem(shape, dtype, kernels)
        row = run.row | {"error": run.error_of(run.ours, run.c)}
        if shape in shapes:
            row["peer_error"] = run.error_of(run.cublas, run.out)
            flops = 2 * shape[0] * shape[1] * shape[2]
            row |= timed({"ours": run.ours, "cublas": run.cublas}, flops)
            if not options.no_triton:
                row |= timed({"ours_to_triton": run.ours, "triton": run.triton}, flops, (13, 0, 0))
        print(json.dumps(row), flush=True)


class Kernels:
    """Compiled once for each configuration."""

    def __init__(self, dtype, config):
        import torch

        self.dtype = dtype
        self.fixed = config
        self.blocks = torch.cuda.get_device_properties(0).multi_processor_count
        self.made = {}

    @property
    def is_narrow(self):
        return self.dtype.itemsize == 1

    def config(self, shape):
        from basedsl_cute.ops.hopper.gemm import Config, choose_config

        if self.fixed:
            return Config(**eval(self.fixed))
        return choose_config(*shape, self.dtype.itemsize * 8, self.blocks)

    def get(self, cfg, a, b, c, scales):
        import basedsl_cute as cute
        from basedsl_cute.ops.hopper.gemm import gemm

        if cfg not in self.made:
            start = time.perf_counter()
            if self.is_narrow:
                call = cute.compile(scaled_gemm(), a, b, c, *scales, self.blocks, cfg)
            else:
                call = cute.compile(gemm, a, b, c, self.blocks, cfg)
            report = "no ptxas here"
            if "resources" in call.stages:
                report = " ".join(call.stages.text("resources").split())
            print(f"compiled in {time.perf_counter() - start:.2f} s: {report}", flush=True)
            self.made[cfg] = call, report
        return self.made[cfg]


def scaled_gemm():
    """C = (A B^T) * scale_a * scale_b, scales in device memory."""
    import basedsl_cute as cute
    from basedsl_cute.ops.hopper.gemm import gemm

    def scaled(acc, x, y):
        return acc * (x * y)

    def everywhere(scale, shape):
        return cute.make_tensor(scale.iterator, cute.make_layout(shape, stride=(0,) * len(shape)))

    @cute.jit
    def call(
        a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, x: cute.Tensor, y: cute.Tensor,
        blocks: cute.Int32, cfg: cute.Constexpr,
    ):  # fmt: skip
        gemm(a, b, c, blocks, cfg, scaled, (everywhere(x, c.shape), everywhere(y, c.shape)))

    return call


class Problem:
    """Operands of one shape, and each contender's call."""

    def __init__(self, shape, dtype, kernels):
        import torch

        m, n, k = shape
        self.torch = torch
        self.is_narrow = kernels.is_narrow
        self.a = torch.randn(m, k, device="cuda").to(dtype)
        self.b = torch.randn(n, k, device="cuda").to(dtype)
        out = torch.bfloat16 if self.is_narrow else dtype
        self.c = torch.full((m, n), float("nan"), device="cuda", dtype=out)
        self.out = torch.empty_like(self.c)
        self.scales = [torch.ones(1, device="cuda") for _ in range(2)]
        cfg = kernels.config(shape)
        self.call, report = kernels.get(cfg, self.a, self.b, self.c, self.scales)
        self.blocks = kernels.blocks
        name = str(dtype).removeprefix("torch.")
        config = config_text(cfg)
        self.row = {"dtype": name, "shape": shape, "config": config}
        self.row |= {"kernel": f"{name} {config}", "resources": report}

    def ours(self):
        if self.is_narrow:
            self.call(self.a, self.b, self.c, *self.scales, self.blocks)
        else:
            self.call(self.a, self.b, self.c, self.blocks)

    def cublas(self):
        torch = self.torch
        if not self.is_narrow:
            torch.matmul(self.a, self.b.T, out=self.out)
            return
        x, y = self.scales
        torch._scaled_mm(
            self.a, self.b.T, x, y, out_dtype=self.c.dtype, use_fast_accum=True, out=self.out
        )

    def triton(self):
        import triton_gemm

        triton_gemm.matmul(self.a, self.b, self.out)

    def error_of(self, call, c):
        """The largest error of what `call` makes of `c`, in units of what rounding may cost."""
        call()
        self.torch.cuda.synchronize()
        a, b = self.a, self.b.double()
        k = a.shape[1]
        sums = 1e-3 * k**0.5 * 2**-4 + 1e-5 * k
        if self.is_narrow:
            # Hopper aligns 32 products and the sum to the largest of them and keeps 14 bits or so
            # (DeepSeek-V3 Technical Report, 3.3.2), whoever asks it to.
            sums += k / 32 * (k**0.5 + 16) * 2**-13
        worst = 0.0
        rows = max(1, 2**27 // max(c.shape[1], k))
        for first in range(0, c.shape[0], rows):
            part = slice(first, first + rows)
            exact = a[part].double() @ b.T
            allowed = self.torch.finfo(c.dtype).eps * exact.abs() + sums
            error = ((c[part].double() - exact).abs() / allowed).max().item()
            if error != error:
                return float("inf")
            worst = max(worst, error)
        return worst


def config_text(cfg):
    """The fields of a configuration that are not the default."""
    default = type(cfg)()
    changed = [
        f"{name}={value}"
        for name, value in vars(cfg).items()
        if value != getattr(default, name) or name in ("tile", "stages")
    ]
    return ", ".join(changed).replace(", ", ",").replace(",", " ").replace("( ", "(")


def timed(contenders, flops, rounds=(13, 40, 40)):
    """TFLOP/s of each, from medians over so many rounds in which they take turns in random order:
    of launches in a row, about 10 ms of them, of single launches, and of such on an idle device.
    """
    row = max(2, min(400, int(7e12 / flops)))
    names = list(contenders)
    times = {name: {} for name in names}
    for once in contenders.values():
        seconds(once, 2)  # compiles, tunes, warms up
    for kind, launches, count in zip(("", *SINGLE), (row, 1, 1), rounds, strict=True):
        for _ in range(count):
            random.shuffle(names)
            for name in names:
                took = seconds(contenders[name], launches, is_busy=kind != "_called")
                times[name].setdefault(kind, []).append(took)
    return {
        name + kind: flops / statistics.median(took) / 1e12
        for name, kinds in times.items()
        for kind, took in kinds.items()
    }


def seconds(once, launches, is_busy=True):
    """Seconds of one of `launches` calls in a row, queued while the device is kept busy, or not."""
    import torch

    start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
    if is_busy:
        torch.cuda._sleep(1_000_000)
    start.record()
    for _ in range(launches):
        once()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3 / launches


if __name__ == "__main__":
    sys.exit(main())
