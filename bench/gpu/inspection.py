"""Compares what is said of kernels without a GPU with what a GPU and its tools say.

    python bench/gpu/inspection.py [--out FOLDER]

- Events of one kernel from the GPU and from the simulator, side by side: the names that each warp
  recorded, in order. FOLDER gets both as files for ui.perfetto.dev.
- The occupancy of kernels against cuOccupancyMaxActiveBlocksPerMultiprocessor.
- The Python lines in reports of compute-sanitizer and Nsight Compute (ncu), where these are.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import basedsl_cute as cute
from basedsl_cute.device import driver

ROOT = Path(__file__).parents[2]
WRONG = ROOT / "tests" / "errors" / "programs" / "sim_out_of_bounds.py"
SAXPY = ROOT / "examples" / "cute" / "saxpy.py"
ARCH = "CUTE_DSL_ARCH"
PROGRAMS = ROOT / "tests" / "cute" / "programs"
SQUARES = runpy.run_path(str(PROGRAMS / "recorded_squares.py"))
HOLDING = runpy.run_path(str(PROGRAMS / "held_registers.py"))


def record(arch: str | None) -> cute.interop.events.Events:
    """The events of `squares` on an architecture, by default the GPU that is here."""
    os.environ.pop(ARCH, None)
    if arch is not None:
        os.environ[ARCH] = arch
    found: cute.interop.events.Events = SQUARES["run"]()
    return found


def traces(out: Path | None) -> bool:
    """Print the events of each warp from both; return True if the names are the same, in order."""
    both = {"simulator": record("sim")}
    if driver.is_available():
        both["GPU"] = record(None)
    names = {}
    for where, events in both.items():
        if out is not None:
            events.save(out / f"trace-{where.lower()}.json")
        for warp in (0, 1):
            of_warp = [one for one in events if one.warp == warp]
            names[where, warp] = [one.name for one in of_warp]
            took = of_warp[-1].end - of_warp[0].start
            print(f"  {where:9} warp {warp}: {len(of_warp)} events in {took} {events.unit}: "
                  f"{' '.join(names[where, warp][:6])} ...")  # fmt: skip
    if "GPU" not in both:
        print("  there is no GPU")
        return True
    return all(names["GPU", warp] == names["simulator", warp] for warp in (0, 1))


def occupancies() -> Iterator[tuple[str, int, int]]:
    """Twenty kernels: what each takes, its blocks on an SM as we say, and as the driver says."""
    os.environ.pop(ARCH, None)
    driver.ensure_context()
    for threads in HOLDING["THREADS"]:
        for values, words in HOLDING["VALUES_AND_WORDS"]:
            compiled = HOLDING["compiled"](values, words, threads)
            (found,) = compiled.resources.values()
            library = driver.Library(compiled.__cubin__ or b"")
            said = library.kernel(found.name).active_blocks(threads, found.dynamic_smem)
            library.unload()
            smem = found.static_smem + found.dynamic_smem
            takes = f"{threads} threads, {found.registers} registers, {smem} bytes shared"
            yield takes, found.occupancy().blocks, said


def sanitizer() -> str | None:
    """The line of compute-sanitizer's report that names a Python line, for a wrong program."""
    command = ["compute-sanitizer", "--tool", "memcheck", sys.executable, str(WRONG)]
    env = {**os.environ, "CUTE_DSL_LINEINFO": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=60)
    lines = (done.stdout + done.stderr).splitlines()
    return next((line.strip("= ") for line in lines if f"{WRONG.name}:" in line), None)


def nsight() -> str:
    """A line of Nsight Compute's source page that has machine code of a Python line."""
    with tempfile.TemporaryDirectory() as folder:
        report = str(Path(folder) / "report")
        env = {**os.environ, "CUTE_DSL_LINEINFO": "1"}
        profile = ["ncu", "--section", "SourceCounters", "--import-source", "yes", "-o", report]
        done = subprocess.run(
            [*profile, sys.executable, str(SAXPY)],
            capture_output=True, text=True, check=False, env=env, timeout=90,
        )  # fmt: skip
        said = done.stdout + done.stderr
        if not Path(f"{report}.ncu-rep").exists():
            found = re.search(r"==ERROR== (.*)", said)
            return f"ncu made no report: {found[1] if found else said.strip()[-200:]}"
        show = ["ncu", "--import", f"{report}.ncu-rep", "--page", "source", "--csv"]
        for view in (["--print-source", "cuda,sass"], ["--view", "cuda,sass"], []):
            done = subprocess.run([*show, *view], capture_output=True, text=True, check=False)
            lines = [one for one in done.stdout.splitlines() if "alpha" in one or SAXPY.name in one]
            if lines:
                return "\n    ".join(line[:160] for line in lines[:4])
        return f"no Python line in the report: {(done.stdout + done.stderr)[:300]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the folder for traces")
    given = parser.parse_args()
    print("events")
    same = traces(given.out)
    print(f"  the same names in the same order: {same}")
    if not driver.is_available():
        return 0 if same else 1
    print("blocks of an SM: ours, the driver's")
    rows = list(occupancies())
    for takes, ours, said in rows:
        print(f"  {takes}: {ours}, {said}{'' if ours == said else '  DIFFERENT'}")
    equal = sum(ours == said for _, ours, said in rows)
    print(f"  {equal} of {len(rows)} equal")
    for tool, ask in (("compute-sanitizer", sanitizer), ("ncu", nsight)):
        found = ask() if shutil.which(tool) else "is not here"
        print(f"{tool}\n    {found}")
    return 0 if same and equal == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
