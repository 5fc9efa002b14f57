"""Compile times: cold, from the disk cache, by stage, and how they grow with a kernel.

    python bench/compile.py [--only NAME] [--repeat N] [--no-growth] [--out rows.json]

Cold: a new process with an empty disk cache, after the imports of the program and, on a GPU, with
a CUDA context; the time is that of the first call up to the end of compilation, with MLIR and
LLVM loaded in it (the row `mlir`, and a part of `host code`). Part of loading is to map their
shared libraries. A thread does it, from the program's first decorated function on where the cache
is empty: what it has done by the call is not in the time, so a line under the table has the time
of processes whose cache has another program's code, where it begins with the call. Another line
has the compiler loaded, as systems have it that load theirs while they are imported: the case is
then the second function that its process compiles, after `hello`. Warm: the disk cache was filled
by another process; of a function that sets attributes of its object while it is traced no code is
kept, and each process compiles. Medians of alternating processes. Without a GPU the code is made
for sm_90a and not run. Modules of Python come from their .pyc files, as those of an
installed package do.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from goals import COMPILE

PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "cute" / "programs"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "cute"

# The stages of a compilation by what one would call them. What the rows leave over is the types of
# the arguments and the table of what tracing read.
GROUPS = {
    "key in the cache": ("key",),
    "pre-stage": ("pre-stage",),
    "mlir": ("mlir",),
    "trace": ("trace",),
    "lowering": ("lower-cute", "launches", "ptx-only", "nvvm"),
    "LLVM to PTX": ("ptx",),
    "host code": (
        "host",
        "bfloat16",
        "exact-math",
        "buffers",
        "vectors",
        "llvm",
        "asserts",
        "llvmir",
        "entry",
        "optimised",
        "object",
    ),
    "wait for ptxas": ("cubin", "resources"),
    "load": ("load",),
    "to the cache": ("keep",),
}


def arrays(name):
    """The function of a case and what it is called with."""
    import numpy as np

    import basedsl_cute as cute
    from basedsl_cute.runtime import from_dlpack

    def of(shape, dtype=np.float32):
        return from_dlpack(np.zeros(shape, dtype), assumed_align=16)

    if name == "hello":
        import hello

        return hello.host, ()
    if name == "elementwise_add":
        import elementwise

        return elementwise.elementwise_add, tuple(of((512, 1024)) for _ in range(3))
    if name == "softmax":
        import softmax

        return softmax.softmax, (of((64, 1024)), of((64, 1024)))
    if name == "layer_norm":
        import normalization

        x, w = (64, 1024), (1024,)
        return normalization.layer_norm, (of(x), of(w), of(w), of(x), 1e-5)
    if name == "transpose":
        import transpose

        return transpose.transpose, (of((128, 256)), of((256, 128)))
    if name == "attention":
        from basedsl_cute.ops.flash import attention as flash
        from basedsl_cute.ops.flash.variant import Variant

        x = np.zeros((4, 2, 256, 128), np.float16).transpose(2, 3, 1, 0)
        lse = np.zeros((4, 2, 256), np.float32).transpose(2, 1, 0)
        tensors = (x, x, x, np.zeros_like(x), lse, None, None)
        nothing = None, (None,) * 4, (None, None, None), (), (None,) * 3
        config = flash.HOPPER_CONFIGS[128][1]
        static = 1.0, 1.0, 4, 256, 132, 128, 128, Variant(), config, 0
        return flash._launch, (*tensors, *nothing, *static)
    if name.startswith("program: "):
        return program(name.removeprefix("program: "), of)
    from basedsl_cute.ops.hopper.gemm import Config, choose_config, gemm

    config = Config() if name == "hopper_gemm" else choose_config(4096, 4096, 4096, 16, 132)
    half = [np.zeros(shape, np.float16) for shape in ((256, 128), (256, 128), (256, 256))]
    return gemm, (*half, cute.Int32(4), config)


def program(name, of):
    """A program as users of CuTe write them (`tests/cute/programs`), with dynamic shapes."""
    import operator

    import numpy as np

    import basedsl_cute as cute

    sys.path.insert(0, str(PROGRAMS))
    stream = cute.cuda.default_stream()
    if name == "elementwise":
        import elementwise_apply

        a, b, c = (of((512, 1024)).mark_layout_dynamic() for _ in range(3))
        return elementwise_apply.elementwise_apply, (operator.add, [a, b], c)
    if name == "Hopper GEMM":
        import hopper_classic

        gemm = hopper_classic.HopperWgmmaGemmKernel(cute.Float32, (128, 256), (2, 1))
        halves = (of((512, 512, 1), np.float16).mark_layout_dynamic(1) for _ in range(3))
        return type(gemm).__call__, (gemm, *halves, stream)
    import hopper_fmha

    attention = hopper_fmha.HopperFmha(128, n_block=128, causal=True, wgs=2)
    tensors = (of((1, 256, 2, 128), np.float16).mark_layout_dynamic(3) for _ in range(4))
    return type(attention).__call__, (attention, *tensors, None, 0.1, stream)


CASES = (
    "elementwise_add",
    "hello",
    "softmax",
    "layer_norm",
    "transpose",
    "hopper_gemm",
    "hopper_gemm of 4096^3",  # as it is chosen for that size: ptxas takes longer
    "attention",
    "program: elementwise",
    "program: Hopper GEMM",
    "program: attention by wgmma",
)


def child(name, loaded=False):
    """Compile one case in this process, after `hello` if the compiler is to be `loaded`; a line of
    JSON.
    """
    sys.path.insert(0, str(EXAMPLES))
    from basedsl_cute.device import driver
    from basedsl_cute.dsl.cute import CUTE

    function, args = arrays(name)
    gpu = driver.is_available()
    if gpu:
        driver.ensure_context()
    if loaded:
        CUTE.driver.variant(CUTE.driver.bind(*arrays("hello"), {}, CUTE.options))
    start = perf_counter()
    call = CUTE.driver.bind(function, args, {}, CUTE.options)
    compiled, _ = CUTE.driver.variant(call)
    total = perf_counter() - start
    record = {"total": total, "seconds": compiled.seconds, "from_disk": CUTE.counts["loaded"]}
    # Code that sets attributes of its object while it is traced is for one call: none is kept.
    record["kept"] = not compiled.effects
    stages = compiled.stages
    record["kernel_ops"] = stages.text("cute").count("\n")
    if gpu:
        start = perf_counter()
        compiled.run(call.values)
        driver.synchronize()
        record["first run"] = perf_counter() - start
    if "cubin" in stages and not CUTE.counts["loaded"]:
        from basedsl_cute.lowering.ptx import ptxas

        start = perf_counter()
        ptxas.assemble(stages.text("ptx"), CUTE.language.target(CUTE.options).name)
        record["ptxas"] = perf_counter() - start
    print(json.dumps(record))


def in_process(name, folder, loaded=False):
    """The record of one case in a new process whose disk cache is in `folder`."""
    out = subprocess.run(
        [sys.executable, __file__, "--child", name, *["--loaded"] * loaded],
        env=environment(BASEDSL_CACHE="1", BASEDSL_CACHE_DIR=str(folder)),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(out.splitlines()[-1])


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if "CUTE_DSL_ARCH" not in kept and not has_gpu():
        kept["CUTE_DSL_ARCH"] = "sm_90a"
    return kept | more


def has_gpu():
    from basedsl_cute.device import driver

    return driver.is_available()


def measure(name, repeat):
    """Cold records of a case, those with a cache that has something else, those with the compiler
    loaded, warm ones, in turns.
    """
    cold, late, second, warm = [], [], [], []
    with tempfile.TemporaryDirectory() as filled:
        in_process(name, filled)
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as empty:
                cold.append(in_process(name, empty))
            with tempfile.TemporaryDirectory() as other:
                Path(other, "another.code").touch()
                late.append(in_process(name, other))
            with tempfile.TemporaryDirectory() as empty:
                second.append(in_process(name, empty, loaded=True))
            warm.append(in_process(name, filled))
    from_disk = [r["from_disk"] or not r["kept"] for r in warm]
    if any(r["from_disk"] for r in cold + late + second) or not all(from_disk):
        raise SystemExit(f"{name}: the disk cache was not used as meant")
    return cold, late, second, warm


def median(records, read):
    return statistics.median(read(record) for record in records) * 1e3


def table(name, cold, late, second, warm):
    """The stages of the cold compilation in the middle, and medians; as a row too."""
    total = median(cold, lambda r: r["total"])
    middle = min(cold, key=lambda r: abs(r["total"] * 1e3 - total))
    row = {"case": name, "cold": total, "warm": median(warm, lambda r: r["total"]), "stages": {}}
    row["kept"] = cold[0]["kept"]
    again = "warm" if row["kept"] else "in the next process (tracing has effects: no code is kept)"
    print(f"{name}: {total:.1f} ms cold, {row['warm']:.1f} ms {again}", end="")
    goals = COMPILE.get(name)
    if goals:
        print("  (goals:", ", ".join(f"{g} ms" for g in goals if g), "on an H200 machine)", end="")
    print()
    shown = 0.0
    for group, names in GROUPS.items():
        took = sum(middle["seconds"].get(n, 0) for n in names) * 1e3
        shown += took
        row["stages"][group] = took
        print(f"  {group:<16} {took:8.1f} ms  {took / total:6.1%}")
    rest = middle["total"] * 1e3 - shown
    print(f"  {'the rest':<16} {rest:8.1f} ms  {rest / total:6.1%}")
    loaded = median(cold, lambda r: r["total"] - r["seconds"].get("mlir", 0))
    print(f"  without loading MLIR (row mlir): {loaded:.1f} ms")
    row["late"] = median(late, lambda r: r["total"])
    print(f"  with nothing mapped before the call: {row['late']:.1f} ms")
    row["second"] = median(second, lambda r: r["total"])
    print(f"  with the compiler loaded: {row['second']:.1f} ms")
    for key, text in (("ptxas", "ptxas alone"), ("first run", "first run after it")):
        if key in cold[0]:
            print(f"  {text}: {median(cold, lambda r, key=key: r[key]):.1f} ms", end="")
            if key in warm[0]:
                print(f", warm {median(warm, lambda r, key=key: r[key]):.1f} ms", end="")
            print()
    return row


def growth(repeat):
    """The Hopper GEMM's compile time against its tile's extents and its stages; as rows too."""
    sys.path.insert(0, str(EXAMPLES))
    os.environ.update(environment(BASEDSL_CACHE="0"))
    import hopper_gemm

    import basedsl_cute as cute

    function, (a, b, c, blocks, _) = arrays("hopper_gemm")

    def seconds(tile, stages):
        config = hopper_gemm.Config(tile=tile, stages=stages)
        times = []
        for _ in range(repeat + 1):
            compiled = cute.compile(function, a, b, c, blocks, config)
            times.append(sum(compiled.seconds.values()))
        return min(times[1:])

    print("growth of the Hopper GEMM's compile time, in a warm process, least of some")
    series = {
        "columns of the tile": [(n, ((128, n, 64), 4)) for n in (64, 128, 192, 256)],
        "depth of the tile": [(k, ((128, 64, k), 2)) for k in (32, 64, 128, 192)],
        "stages": [(s, ((128, 64, 64), s)) for s in (2, 4, 8)],
    }
    rows = []
    for label, points in series.items():
        times = [(x, seconds(*point)) for x, point in points]
        shown = "  ".join(f"{x}: {t * 1e3:.0f} ms" for x, t in times)
        (x0, t0), (x1, t1) = times[0], times[-1]
        ratio = f"{x1 / x0:.0f} x as large costs {t1 / t0:.2f} x"
        print(f"  {label:<20} {shown}   {ratio}")
        rows.append({"growth": label, "larger": x1 / x0, "costs": t1 / t0, "seconds": times})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-growth", action="store_true")
    parser.add_argument("--out", help="write what is measured to this JSON file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--loaded", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.loaded)
        return
    rows = []
    for name in CASES:
        if options.only in name:
            rows.append(table(name, *measure(name, options.repeat)))
            print(flush=True)
    if not options.no_growth:
        rows += growth(max(2, options.repeat // 2))
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
