"""`make gpu-bench`: every benchmark that needs a GPU, and what of the goals is kept.

    python bench/gpu/run.py [--quick] [--out results.json] [--only NAME ...]

Each memory-bound kernel: GB/s, the ratio to a device-to-device copy of the same bytes, the ratio to
PyTorch's kernel. The GEMMs: TFLOP/s, the ratios to cuBLAS and Triton, registers, spills, achieved
occupancy. Compile times by stage. Each program is a process with a time limit of its own; one that
fails does not stop the others. Fails where a result is wrong or a program does not end well, not
where a goal is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from basedsl.testing.hardware import why_no_gpu
from basedsl_cute.device import driver

BENCH = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))

import goals  # noqa: E402


@dataclass(frozen=True)
class Program:
    """A benchmark under bench/ that writes its rows with `--out`; `quick` asks for less of it.

    `majors` are the major compute capabilities of the GPUs that it is for, by default all. Goals
    know its rows by `label`, if it is another one than the name.
    """

    name: str
    seconds: int  # at most
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    majors: tuple[int, ...] = ()
    label: str = ""

    def skipped(self, capability: tuple[int, int]) -> str:
        """The reason why a GPU of a compute capability skips it, or nothing."""
        if not self.majors or capability[0] in self.majors:
            return ""
        wanted = " or ".join(f"{major}.x" for major in self.majors)
        return f"for compute capability {wanted}, and this GPU has {'.'.join(map(str, capability))}"


HOPPER, BLACKWELL = (9,), (10, 11, 12)
SMALL = ("--shape", "4096", "4096", "4096")
PROGRAMS = (
    Program("gpu/memory_bound.py", 90, quick=("--only", "softmax")),
    Program("gpu/gemm.py", 150, quick=("--dtype", "float16", *SMALL), majors=HOPPER),
    Program("gpu/blackwell.py", 200, quick=("--only", "4096x4096x4096"), majors=BLACKWELL),
    Program("gpu/shapes.py", 90, quick=("--only", "float16 kk 16x4096x4096")),
    Program(
        "gpu/shapes.py",
        150,
        ("--random", "200", "--seconds", "140"),
        quick=("--seconds", "5"),
        label="random shapes",
    ),
    Program(
        "gpu/shapes.py",
        90,
        ("--batched", "80", "--seconds", "80"),
        quick=("--seconds", "5"),
        label="batched shapes",
    ),
    Program("gpu/ampere_gemm.py", 110, quick=("--only", "calls")),
    Program("gpu/grouped_gemm.py", 30, majors=HOPPER),
    Program("gpu/attention.py", 200, quick=("--quick",)),
    Program("attention_code.py", 60, quick=("--only", "hopper 128")),
    Program("gpu/distributed.py", 150, quick=("--check-only",)),
    Program("gpu/kernels.py", 110, quick=("--only", "sgemm"), majors=HOPPER),
    Program("gpu/kernels.py", 60, ("--only", "sgemm"), majors=BLACKWELL),
    Program("gpu/programs.py", 90, quick=("--only", "elementwise"), majors=HOPPER),
    Program("gpu/programs.py", 60, ("--only", "elementwise"), majors=BLACKWELL),
    Program("compile.py", 100, ("--repeat", "3"), quick=("--only", "elementwise", "--no-growth")),
)


def main() -> int:
    options = arguments()
    reason = why_no_gpu()
    if reason:
        print(f"make gpu-bench needs an NVIDIA GPU: {reason}", file=sys.stderr)
        return 1
    if options.check:
        return 0
    if importlib.util.find_spec("torch") is None:
        print("the benchmarks compare with PyTorch: pip install torch", file=sys.stderr)
        return 1
    return run(PROGRAMS, options, driver.device(driver.current_device()).capability)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a part of each program, in a minute")
    parser.add_argument("--out", help="write all rows and verdicts to this JSON file")
    parser.add_argument("--only", nargs="*", default=(), help="programs whose names contain these")
    parser.add_argument("--check", action="store_true", help="only tell whether there is a GPU")
    return parser.parse_args(given)


def run(
    programs: tuple[Program, ...], options: argparse.Namespace, capability: tuple[int, int]
) -> int:
    """All programs for a GPU of this compute capability, then the verdicts; 1 if one failed."""
    begun = time.perf_counter()
    rows: dict[str, list[dict[str, Any]]] = {}
    failures, skipped = {}, {}
    for program in programs:
        if options.only and not any(part in program.name for part in options.only):
            continue
        reason = program.skipped(capability)
        if reason:
            skipped[program.name] = reason
            continue
        print(f"== bench/{program.name}", flush=True)
        start = time.perf_counter()
        label = program.label or program.name
        rows[label], failure = measured(program, options.quick)
        took = time.perf_counter() - start
        if failure:
            failures[label] = failure
        print(f"-- {took:.0f} s{', ' + failure if failure else ''}\n", flush=True)
    verdicts = [goal.verdict(rows.get(goal.program)) for goal in goals.goals()]
    print(f"{'goal':<49} measured")
    for verdict in verdicts:
        print(goals.line(verdict))
    for name, failure in failures.items():
        print(f"bench/{name}: {failure}")
    for name, reason in skipped.items():
        if name not in rows:
            print(f"bench/{name}: skipped, it is {reason}")
    print(f"{time.perf_counter() - begun:.0f} s")
    if options.out:
        report = {"rows": rows, "goals": verdicts, "failures": failures, "skipped": skipped}
        Path(options.out).write_text(json.dumps(report, indent=1))
    return 1 if failures else 0


def measured(program: Program, quick: bool) -> tuple[list[dict[str, Any]], str]:
    """The rows that a program wrote, and why it did not end well; it prints as it runs."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        command = [sys.executable, str(BENCH / program.name), "--out", str(out)]
        command += [*program.arguments, *(program.quick if quick else ())]
        failure = outcome(command, program.seconds)
        if not out.exists():
            return [], failure or "it wrote no rows"
        report = json.loads(out.read_text())
    return (report["records"] if isinstance(report, dict) else report), failure


def outcome(command: list[str], seconds: float) -> str:
    """Run a command, and what it starts, for so long at most; why it did not end well, if so."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"not done after {seconds:g} s"
    finally:
        end(process)
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}" if status else ""


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends what a process and its children left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
