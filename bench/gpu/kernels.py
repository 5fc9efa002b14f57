"""Registers, spills and achieved occupancy of the matrix product kernels.

    python bench/gpu/kernels.py [--out rows.json] [--only TEXT]

Each kernel is launched once, with the configuration that it has in the other benchmarks. Registers
and spilled bytes are what ptxas says; occupancy is Nsight Compute's average of active warps on a
multiprocessor, in percent of those that it has room for.
"""

import argparse
import csv
import io
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from goals import GEMM

METRIC = "sm__warps_active.avg.pct_of_peak_sustained_active"
NAMES = "gemm_kernel|sgemm_kernel|grouped_kernel"
SECONDS = 50  # with ncu, and without it where that fails

CUBE = (4096, 4096, 4096)
HOPPER = [(dtype, shape) for dtype in ("float16", "bfloat16", "float8_e4m3fn") for shape in GEMM]
AMPERE = ("float16", "bfloat16", "float8_e4m3fn", "int8", "float32")
ORDERS = ("kn", "kk", "mn", "mk")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", default="", help="kernels whose description contains this")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        launch_all(options.only)
        return 0
    rows, failure = profiled(options.only)
    print(f"{'kernel':<46} registers  spilled  occupancy")
    for row in rows:
        spilled = row["spill_stores"] + row["spill_loads"]
        achieved = row.get("achieved_occupancy")
        shown = f"{achieved:.1f} %" if achieved is not None else "-"
        print(f"{row['kernel']:<46} {row['registers']:>9} {spilled:>6} B {shown:>10}")
    if failure:
        print(f"occupancy is not measured: {failure}")
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 0 if rows else 1


def profiled(only):
    """The rows of all launches, and why there is no occupancy in them, if so."""
    command = [sys.executable, __file__, "--child", "--only", only]
    if shutil.which("ncu") is None:
        return output(command)[0], "there is no ncu here"
    ncu = ["ncu", "--csv", "--metrics", METRIC, "-k", f"regex:^({NAMES})"]
    rows, text, failure = output(ncu + command)
    if not rows:
        return output(command)[0], failure or "ncu says nothing"
    lines = [line for line in text if line.startswith('"')]
    found = list(csv.DictReader(io.StringIO("\n".join(lines))))
    values = [float(line["Metric Value"]) for line in found if line["Metric Name"] == METRIC]
    if len(values) != len(rows):
        errors = [line for line in text if "==ERROR==" in line]
        return rows, failure or (errors or [f"{len(values)} values of {len(rows)}"])[0]
    for row, value in zip(rows, values, strict=True):
        row["achieved_occupancy"] = value
    return rows, ""


def output(command):
    """The output of a command: rows, other lines, and why it did not end well."""
    try:
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [], [], f"not done after {SECONDS} s"
    lines = made.stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return rows, lines, f"exit status {made.returncode}" if made.returncode else ""


# Launches ----------------------------------------------------------------------------------------


def launch_all(only):
    """Launch each kernel once, in a row; a line of JSON for each."""
    import torch

    for name, launch in (*products(torch), *grouped(torch)):
        if only in name:
            call = launch()
            torch.cuda.synchronize()
            resources = call.stages.text("resources")
            numbers = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", resources)}
            kept = ("registers", "spill_stores", "spill_loads")
            row = {"kernel": name, "resources": resources.strip()} | {k: numbers[k] for k in kept}
            print(json.dumps(row), flush=True)


def products(torch):
    """Names and launches of `matmul`'s kernels; a launch gives back the compiled function."""
    from basedsl_cute.ops import matmul
    from basedsl_cute.ops.ampere import gemm as ampere_gemm
    from basedsl_cute.ops.ampere import gemm_tma
    from basedsl_cute.ops.gemm import matmul as multiply

    limits = torch.cuda.get_device_properties(0)

    def launch(dtype, order, shape, config):
        m, n, k = shape
        kind = getattr(torch, dtype)
        a = random(torch, (m, k), kind) if order[0] == "k" else random(torch, (k, m), kind).T
        b = random(torch, (k, n), kind) if order[1] == "n" else random(torch, (n, k), kind).T
        narrow = torch.bfloat16 if dtype.startswith("float8") else None
        matmul(a, b, config=config, out_dtype=narrow, tf32=config is not None)
        return list(multiply._plans.values())[-1].call

    for dtype, shape in HOPPER:
        name = f"wgmma {dtype} {'x'.join(map(str, shape))}"
        yield name, partial(launch, dtype, "kk", shape, None)
    for dtype in AMPERE:
        width = getattr(torch, dtype).itemsize * 8
        shared = limits.shared_memory_per_block_optin
        for name, kind in (("TMA", gemm_tma), ("cp.async", ampere_gemm)):
            cfg = kind.choose_config(*CUBE, width, limits.multi_processor_count, shared)
            named = f"mma.sync, {name} {dtype} 4096x4096x4096"
            yield named, partial(launch, dtype, "kk", CUBE, cfg)
    for order in ORDERS:
        yield f"sgemm {order} 4096x4096x4096", partial(launch, "float32", order, CUBE, None)


def grouped(torch):
    """The same of the grouped product."""
    import grouped_gemm as bench

    import basedsl_cute as cute

    def launch(config):
        shapes = [(2048, 2048, 2048)] * 8
        groups = [
            [random(torch, (x, y), torch.float16) for x, y in ((m, k), (n, k), (m, n))]
            for m, n, k in shapes
        ]
        tables = [torch.from_numpy(x).cuda() for x in bench.tables(groups)]
        blocks = torch.cuda.get_device_properties(0).multi_processor_count
        maps = torch.zeros(blocks, bench.maps_of(config), 16, dtype=torch.int64, device="cuda")
        call = cute.compile(bench.grouped_gemm, *tables, maps, bench.KINDS, config)
        call(*tables, maps)
        return call

    for label, config in bench.CONFIGS.items():
        yield f"grouped float16 {label}", partial(launch, config)


def random(torch, shape, kind):
    if kind.is_floating_point:
        return torch.randn(shape, device="cuda").to(kind)
    return torch.randint(-100, 100, shape, device="cuda", dtype=kind)


if __name__ == "__main__":
    sys.exit(main())
