"""Kernels at the speed of memory: each against a device-to-device copy of the same bytes, and
against PyTorch's own kernel, in one run.

    python bench/gpu/memory_bound.py --out results.json
    python bench/gpu/memory_bound.py --sim              # no GPU: tiny sizes, results only

Every variant is checked on fresh random inputs with a poisoned output before it is timed. Times are
between two CUDA events around several launches that are queued while the device is kept busy;
contenders take turns; medians. A kernel that fails says so, and the rest goes on.
"""

import argparse
import json
import os
import statistics
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "cute"))

ROUNDS = 15
LAUNCHES = 4  # between two events
SECONDS = 210  # no new case is begun after that
EPSILON = 1e-5

TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


class Case:
    """One problem. `inputs` and `outputs` are shapes; `build(variant)` gives (function, static
    arguments) for compiling; `expected` computes in wide floats with NumPy or torch; `peer` is
    PyTorch's own way to do it.
    """

    def __init__(self, name, dtype, inputs, output, build, expected, peer, variants, **more):
        self.name, self.dtype = name, dtype
        self.inputs, self.output = inputs, output
        self.build, self.expected, self.peer = build, expected, peer
        self.variants = variants
        self.exact = more.get("exact", False)
        self.index = more.get("index")  # which input is a permutation of rows
        self.moved = more.get("moved")  # bytes, if not every input and output once
        self.scalars = more.get("scalars", ())
        self.zeroed = more.get("zeroed", False)

    @property
    def bytes(self):
        """The bytes that have to cross the memory interface."""
        if self.moved is not None:
            return self.moved
        total = 0
        for i, shape in enumerate([*self.inputs, self.output]):
            size = 8 if i == self.index else BYTES[self.dtype]
            for extent in shape:
                size *= extent
            total += size
        return total


def cases(small):
    """The problems, tiny for the simulator."""
    import elementwise
    import gather_scatter
    import normalization
    import row_reduction
    import softmax
    import transpose

    m, n = (64, 512) if small else (16384, 8192)
    grids = [((4, 32), 4), ((4, 32), 2), ((4, 32), 8), ((2, 64), 4), ((1, 128), 4), ((1, 256), 2),
             ((1, 256), 4), ((8, 32), 4), ((16, 32), 2), ((32, 32), 1)]  # fmt: skip
    per_row = [None, 64, 128] if small else [128, 256, 512, 1024]

    steps = [(t, s) for t in per_row for s in ((1, 2) if small else (1, 4, 8))]

    def rows(function):
        return lambda v: (function, {"threads": v})

    def norm(function):
        return lambda v: (function, {"threads": v[0], "steps": v[1]})

    def elementwise_of(op):
        def build(variant):
            threads, count = variant

            def binary(a, b, c):
                elementwise.elementwise_apply(op, (a, b), c, threads, count)

            def ternary(a, b, c, d):
                elementwise.elementwise_apply(op, (a, b, c), d, threads, count)

            return binary if op.__code__.co_argcount == 2 else ternary, {}

        return build

    def softmax_of(lib, x):
        power = lib.exp(x - lib.amax(x, axis=1, keepdims=True))
        return power / power.sum(axis=1, keepdims=True)

    def rms_of(lib, x, w):
        return x / lib.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * w

    def layer_of(lib, x, w, b):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        return centred / lib.sqrt(variance + EPSILON) * w + b

    yield Case(
        "elementwise_add", "float32", [(m, n)] * 2, (m, n), elementwise_of(lambda a, b: a + b),
        lambda lib, a, b: a + b,
        lambda torch, out, a, b: torch.add(a, b, out=out), grids, exact=True,
    )  # fmt: skip
    yield Case(
        "elementwise_add", "float16", [(m, n)] * 2, (m, n), elementwise_of(lambda a, b: a + b),
        lambda lib, a, b: a + b,
        lambda torch, out, a, b: torch.add(a, b, out=out), grids[:6],
    )  # fmt: skip
    yield Case(
        "elementwise_apply a*b+c", "bfloat16", [(m, n)] * 3, (m, n),
        elementwise_of(lambda a, b, c: a * b + c),
        lambda lib, a, b, c: a * b + c,
        lambda torch, out, a, b, c: torch.addcmul(c, a, b, out=out), grids[:6],
    )  # fmt: skip
    for dtype in ("float16", "bfloat16", "float32"):
        yield Case(
            "rms_norm", dtype, [(m, n), (n,)], (m, n), norm(normalization.rms_norm), rms_of,
            lambda torch, out, x, w: torch.nn.functional.rms_norm(x, w.shape, w, EPSILON),
            steps, scalars=(EPSILON,),
        )  # fmt: skip
    for dtype in ("float16", "float32"):
        yield Case(
            "layer_norm", dtype, [(m, n), (n,), (n,)], (m, n), norm(normalization.layer_norm),
            layer_of,
            lambda torch, out, x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b, EPSILON),
            steps, scalars=(EPSILON,),
        )  # fmt: skip
    for dtype in ("float16", "float32"):
        yield Case(
            "softmax", dtype, [(m, n)], (m, n), rows(softmax.softmax), softmax_of,
            lambda torch, out, x: torch.softmax(x, 1, out=out), per_row,
        )  # fmt: skip
    for dtype in ("float32", "float16"):
        yield Case(
            "transpose", dtype, [(m, n)], (n, m), lambda v: (transpose.transpose, {"tile": v}),
            lambda lib, x: x.T,
            lambda torch, out, x: out.copy_(x.T),
            [32, 64] if dtype == "float32" else [64, 128], exact=True,
        )  # fmt: skip
    yield Case(
        "row_sum", "float32", [(m, n)], (m,), rows(row_reduction.row_sum),
        lambda lib, x: x.sum(axis=1), lambda torch, out, x: torch.sum(x, 1, out=out), per_row,
    )  # fmt: skip
    tall, wide = (200, 64) if small else (262144, 1024)
    some = [(None, None), (32, 4), (64, 4), (128, 1)]
    yield Case(
        "gather rows, int64", "float16", [(tall, wide), (tall,)], (tall, wide),
        lambda v: (gather_scatter.gather, {"threads": v[0], "rows": v[1]}),
        lambda lib, x, i: x[i], lambda torch, out, x, i: torch.index_select(x, 0, i, out=out),
        some, exact=True, index=1,
    )  # fmt: skip

    def scattered(lib, x, i):
        y = lib.zeros_like(x)
        y[i] = x
        return y

    yield Case(
        "scatter rows, int64", "float16", [(tall, wide), (tall,)], (tall, wide),
        lambda v: (gather_scatter.scatter, {"threads": v[0], "rows": v[1]}),
        scattered, lambda torch, out, x, i: out.index_copy_(0, i, x), some, exact=True, index=1,
    )  # fmt: skip


# What arrays come from ---------------------------------------------------------------------------


class Numpy:
    """Arrays on the host, for the simulator."""

    def __init__(self):
        import ml_dtypes
        import numpy

        self.lib = numpy
        self.rng = numpy.random.default_rng(0)
        self.types = {"float32": numpy.float32, "float16": numpy.float16}
        self.types["bfloat16"] = ml_dtypes.bfloat16

    def inputs(self, case):
        made = [self.rng.standard_normal(s).astype(self.types[case.dtype]) for s in case.inputs]
        if case.index is not None:
            made[case.index] = self.rng.permutation(case.inputs[case.index][0])
        return made

    def output(self, case):
        return self.lib.full(case.output, self.lib.nan, self.types[case.dtype])

    def wide(self, x):
        return x if x.dtype.kind == "i" else x.astype(self.lib.float64)

    def synchronize(self):
        pass


class Torch:
    """Tensors on the GPU."""

    def __init__(self):
        import torch

        self.lib = torch

    def inputs(self, case):
        torch = self.lib
        kind = getattr(torch, case.dtype)
        made = [torch.randn(s, device="cuda").to(kind) for s in case.inputs]
        if case.index is not None:
            made[case.index] = torch.randperm(case.inputs[case.index][0], device="cuda")
        return made

    def output(self, case):
        kind = getattr(self.lib, case.dtype)
        return self.lib.full(case.output, float("nan"), device="cuda", dtype=kind)

    def wide(self, x):
        return x.float() if x.is_floating_point() else x

    def synchronize(self):
        self.lib.cuda.synchronize()


# Running one case --------------------------------------------------------------------------------


def build(case, variant, inputs, output):
    """The compiled kernel of a variant, for arrays like these."""
    import basedsl_cute as cute

    function, static = case.build(variant)
    tensors = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (*inputs, output)]
    if not hasattr(function, "staged"):
        function = cute.jit(function)
    return cute.compile(function, *tensors, *case.scalars, **static)


def largest_error(arrays, case, output, expected):
    """The largest difference relative to the scale of the result; infinite where a NaN is left."""
    difference = abs(arrays.wide(output) - expected)
    scale = float(abs(expected).max())
    worst = float(difference.max()) / scale
    return worst if worst == worst else float("inf")


def check(arrays, case, compiled):
    """Run on fresh inputs and compare; raises AssertionError."""
    inputs, output = arrays.inputs(case), arrays.output(case)
    compiled(*inputs, output, *case.scalars)
    arrays.synchronize()
    expected = case.expected(arrays.lib, *map(arrays.wide, inputs))
    error = largest_error(arrays, case, output, expected)
    if (case.exact and case.dtype == "float32") or case.index is not None:
        allowed = 0.0 if case.name != "elementwise_add" else 1e-7
    else:
        allowed = TOLERANCE[case.dtype]
    assert error <= allowed, f"the error is {error:.2e}, more than {allowed:.0e}"
    return error


def seconds_each(torch, calls):
    """Device seconds of one of `calls`, queued while the device is kept busy."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(2_000_000)  # about 1 ms: the host is ahead when the clock starts
    start.record()
    for call in calls:
        call()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3 / len(calls)


def measure(arrays, case, kernels):
    """Median seconds of copy, peer and every variant."""
    torch = arrays.lib
    sets = [(arrays.inputs(case), arrays.output(case)) for _ in range(2)]
    half = case.bytes // 2
    copies = [torch.empty((2, half), dtype=torch.uint8, device="cuda") for _ in range(2)]
    for pair in copies:
        pair.random_()
    rotation = [i % 2 for i in range(LAUNCHES)]
    contenders = {
        "copy": [lambda i=i: copies[i][1].copy_(copies[i][0]) for i in rotation],
        "torch": [lambda i=i: case.peer(torch, sets[i][1], *sets[i][0]) for i in rotation],
    }
    for label, compiled in kernels.items():
        contenders[label] = [
            lambda i=i, c=compiled: c(*sets[i][0], sets[i][1], *case.scalars) for i in rotation
        ]
    times = {}
    for round_ in range(ROUNDS + 2):
        for label, calls in list(contenders.items()):
            try:
                taken = seconds_each(torch, calls)
            except Exception as error:  # the others go on
                print(f"  {label} cannot be timed: {str(error).splitlines()[0]}", flush=True)
                del contenders[label]
                continue
            if round_ >= 2:
                times.setdefault(label, []).append(taken)
    return {label: statistics.median(all_) for label, all_ in times.items()}


def run(case, arrays, timed):
    """Build, check and time all variants; a record for the report."""
    record = {"kernel": case.name, "dtype": case.dtype, "bytes": case.bytes, "variants": {}}
    record["shapes"] = [list(s) for s in (*case.inputs, case.output)]
    inputs, output = arrays.inputs(case), arrays.output(case)
    kernels = {}
    for variant in case.variants:
        label = str(variant)
        entry = record["variants"][label] = {}
        try:
            begun = time.perf_counter()
            compiled = build(case, variant, inputs, output)
            entry["compile_seconds"] = round(time.perf_counter() - begun, 3)
            entry["resources"] = resources(compiled)
            entry["error"] = check(arrays, case, compiled)
            kernels[label] = compiled
        except Exception as error:  # the others go on
            entry["failure"] = f"{type(error).__name__}: {error}"
            print(
                f"  {case.name} {case.dtype} {label} FAILED: {entry['failure'][:400]}", flush=True
            )
            if os.environ.get("BENCH_TRACEBACK"):
                traceback.print_exc()
    del inputs, output
    if timed:
        medians = measure(arrays, case, kernels)
        record["gb_per_s"] = {k: case.bytes / s / 1e9 for k, s in medians.items()}
    return record


def resources(compiled):
    """The report of ptxas on the kernel, if there is a kernel of machine code."""
    stages = compiled.stages
    return stages.text("resources").strip() if "resources" in stages else None


def line(record, timed):
    """One row of the table."""
    head = f"{record['kernel']:<24} {record['dtype']:<9}"
    good = [k for k, v in record["variants"].items() if "failure" not in v]
    failed = len(record["variants"]) - len(good)
    tail = f"  ({failed} failed)" if failed else ""
    if not timed:
        errors = [record["variants"][k]["error"] for k in good]
        shown = f"largest error {max(errors):.1e}" if errors else "no result"
        return f"{head} {len(good)} variants, {shown}{tail}"
    speeds = record["gb_per_s"]
    ours = {k: v for k, v in speeds.items() if k not in ("copy", "torch")}
    if not ours:
        return f"{head} no variant ran{tail}"
    best = max(ours, key=ours.get)
    copy, torch = speeds.get("copy"), speeds.get("torch")
    ratio = f"{ours[best] / copy:6.3f}" if copy else "     -"
    peer = f"{ours[best] / torch:6.2f}" if torch else "     -"
    shown = f"{copy:7.0f} {torch or 0:7.0f}" if copy else ""
    return f"{head} {ours[best]:7.0f} {ratio} {peer}  {shown}  {best}{tail}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--out", help="write everything measured to this JSON file")
    parser.add_argument("--sim", action="store_true", help="tiny sizes on the simulator")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    if options.sim:
        os.environ["CUTE_DSL_ARCH"] = "sim"
    begun = time.perf_counter()
    arrays = Numpy() if options.sim else Torch()
    timed = not options.sim
    report = {"records": [], "device": "simulator"}
    if timed:
        torch = arrays.lib
        report["device"] = torch.cuda.get_device_name()
        report["torch"] = torch.__version__
        print(f"{report['device']}, torch {torch.__version__}")
        print(f"{'kernel':<24} {'dtype':<9} {'GB/s':>7} {'/copy':>6} {'/torch':>6}  "
              f"{'copy':>7} {'torch':>7}  best variant")  # fmt: skip
    for case in cases(small=options.sim):
        if options.only not in case.name:
            continue
        if time.perf_counter() - begun > SECONDS:
            print(f"{case.name} {case.dtype}: skipped, out of time", flush=True)
            continue
        try:
            record = run(case, arrays, timed)
            print(line(record, timed), flush=True)
        except Exception as error:  # the others go on
            record = {"kernel": case.name, "dtype": case.dtype, "failure": repr(error)}
            print(f"{case.name} {case.dtype} FAILED: {str(error)[:400]}", flush=True)
            if os.environ.get("BENCH_TRACEBACK"):
                traceback.print_exc()
        report["records"].append(record)
        if timed:
            arrays.lib.cuda.empty_cache()
        if options.out:
            Path(options.out).write_text(json.dumps(report, indent=1))
    print(f"{time.perf_counter() - begun:.0f} s")
    failed = sum("failure" in v for r in report["records"] for v in r.get("variants", {}).values())
    return 1 if failed or any("failure" in r for r in report["records"]) else 0


if __name__ == "__main__":
    sys.exit(main())
