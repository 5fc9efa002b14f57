"""The Hopper GEMM against cuBLAS: checked, then timed in turns, in one run.

    python bench/gpu/gemm.py [--out results.json] [--quick] [--variant NAME ...]

Each variant (tile, stages, cluster) runs in a process of its own with a time limit, so that one
that hangs or fails costs nothing but itself. Inputs are fresh random normal numbers; outputs are
filled with NaN before the checked call and compared with float64. Timing: several launches between
two events with the device kept busy before, alternating with torch.matmul, medians.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "cute"))

SHAPES = [
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (2048, 2048, 2048),
    (8192, 8192, 1024),
    (16384, 16384, 4096),
]
RAGGED = [(1000, 776, 520), (128, 256, 64), (4100, 4104, 8)]
VARIANTS = {
    "128x256x64 s4": {},
    "128x256x64 s4 cluster 2x1": {"cluster": (2, 1)},
    "128x256x64 s4 cluster 1x2": {"cluster": (1, 2)},
    "128x256x64 s4 along n": {"along_m": False},
    "256x128x64 s4": {"tile": (256, 128, 64)},
    "256x128x64 s4 cluster 2x1": {"tile": (256, 128, 64), "cluster": (2, 1)},
    "128x192x64 s4": {"tile": (128, 192, 64)},
    "128x128x64 s6": {"tile": (128, 128, 64), "stages": 6},
}
TIME_LIMIT = 60  # seconds for one variant


def main():
    options = arguments()
    if options.child:
        run_variant(options)
        return
    names = options.variant or list(VARIANTS)
    rows, started = [], time.time()
    for name in names:
        left = options.budget - (time.time() - started)
        if left < 15:
            print(f"{name}: skipped, out of time")
            continue
        rows += run_child(name, options, min(TIME_LIMIT, left))
    summarise(rows)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--quick", action="store_true", help="one shape, fewer repetitions")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS))
    parser.add_argument("--dtype", default="float16", choices=("float16", "bfloat16"))
    parser.add_argument("--budget", type=float, default=220, help="seconds for everything")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_child(name, options, limit):
    """The rows that one variant printed before it ended, or was ended."""
    command = [sys.executable, __file__, "--child", name, "--dtype", options.dtype]
    command += ["--quick"] if options.quick else []
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.time() + limit
        try:
            out, _ = process.communicate(timeout=max(1, deadline - time.time()))
            failure = f"exit status {process.returncode}" if process.returncode else None
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            failure = f"not done after {limit:.0f} s"
    for line in out.splitlines():
        if line.startswith("{"):
            rows.append(json.loads(line))
            print(text_of(rows[-1]), flush=True)
        else:
            print(f"{name}: {line}", flush=True)
    if failure:
        print(f"{name}: {failure}", flush=True)
        rows.append({"variant": name, "error": failure})
    return rows


def text_of(row):
    if "tflops" not in row:
        state = "wrong" if row.get("wrong") else "right"
        return f"{row['variant']:<28} {row.get('shape')!s:<22} {state}, error {row.get('error')}"
    shape = "x".join(map(str, row["shape"]))
    return (
        f"{row['variant']:<28} {shape:<18} {row['tflops']:7.1f} TFLOP/s  cuBLAS "
        f"{row['cublas_tflops']:7.1f}  ratio {row['ratio']:.3f}  error {row['error']:.2f}"
        f"{'  WRONG' if row['wrong'] else ''}"
    )


def summarise(rows):
    best = {}
    for row in rows:
        if "ratio" in row and not row["wrong"]:
            key = tuple(row["shape"])
            if key not in best or best[key]["ratio"] < row["ratio"]:
                best[key] = row
    print("\nbest of each shape")
    for row in best.values():
        print(text_of(row))


def run_variant(options):
    """Check and time one variant; one JSON line for each shape."""
    from basedsl_cute.runtime import driver

    if not driver.is_available():
        print("skipped, no CUDA driver here")
        return
    import hopper_gemm
    import torch

    import basedsl_cute as cute

    name = options.child
    cfg = hopper_gemm.Config(**VARIANTS[name])
    dtype = getattr(torch, options.dtype)
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    torch.manual_seed(int(time.time()))
    a, b, c = (torch.zeros(256, 256, device="cuda", dtype=dtype) for _ in range(3))
    start = time.perf_counter()
    call = cute.compile(hopper_gemm.gemm, a, b, c, blocks, cfg)
    took = time.perf_counter() - start
    report = call.stages.text("resources") if "resources" in call.stages else "no ptxas"
    print(f"compiled in {took:.2f} s; {' '.join(report.split())}", flush=True)

    shapes = SHAPES[1:2] if options.quick else SHAPES
    for shape in RAGGED + shapes:
        m, n, k = shape
        a = torch.randn(m, k, device="cuda", dtype=dtype)
        b = torch.randn(n, k, device="cuda", dtype=dtype)
        c = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
        call(a, b, c, blocks)
        torch.cuda.synchronize()
        error = relative_error(a, b, c, torch)
        row = {"variant": name, "dtype": options.dtype, "shape": shape, "error": error}
        row["wrong"] = not error < 1
        if shape in shapes:
            row |= timed(call, a, b, c, blocks, options.quick, torch)
        print(json.dumps(row), flush=True)


def relative_error(a, b, c, torch):
    """The largest error in units of what rounding to the output and float32 sums may cost."""
    k = a.shape[1]
    worst = 0.0
    rows = max(1, 2**27 // max(c.shape[1], k))
    for first in range(0, c.shape[0], rows):
        part = slice(first, first + rows)
        exact = a[part].double() @ b.double().T
        epsilon = torch.finfo(c.dtype).eps
        allowed = epsilon * exact.abs() + 1e-3 * k**0.5 * 2**-4 + 1e-5 * k
        error = ((c[part].double() - exact).abs() / allowed).max().item()
        worst = error if error != error else max(worst, error)
        if worst != worst:
            return float("inf")
    return worst


def timed(call, a, b, c, blocks, quick, torch):
    m, n = c.shape
    flops = 2 * m * n * a.shape[1]
    launches = max(2, min(20, int(4e12 / flops)))
    rounds = 6 if quick else 14
    out = torch.empty_like(c)
    transposed = b.T
    times = {"ours": [], "cublas": []}
    for _ in range(rounds):
        for name, once in (
            ("ours", lambda: call(a, b, c, blocks)),
            ("cublas", lambda: torch.matmul(a, transposed, out=out)),
        ):
            times[name].append(seconds(once, launches, torch))
    ours, cublas = (statistics.median(times[name][2:]) for name in ("ours", "cublas"))
    ratios = [y / x for x, y in zip(times["ours"][2:], times["cublas"][2:], strict=True)]
    return {
        "tflops": flops / ours / 1e12,
        "cublas_tflops": flops / cublas / 1e12,
        "ratio": statistics.median(ratios),
    }


def seconds(once, launches, torch):
    """Seconds of one of `launches` calls in a row, queued while the device is kept busy."""
    start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
    torch.cuda._sleep(1_000_000)
    start.record()
    for _ in range(launches):
        once()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3 / launches


if __name__ == "__main__":
    main()
