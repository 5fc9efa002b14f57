"""A first call in a new process: compiled, against loaded from the disk cache; and whole processes.

    python bench/starts.py [--repeat N] [PROGRAM ...]

Three mid-sized programs: nested loops of toy, native on the CPU; a layer norm and a tiled matrix
product of cute, on this machine's target. The first call is timed in the process, from the call to
its result, after the imports and with the arguments made (on a GPU they are PyTorch tensors, so the
CUDA context is there). A whole process is timed from outside: interpreter, imports, first call.
Each repetition has a cache folder of its own; one process fills it, the next uses it. Python's own
bytecode cache is on, and filled before anything is timed, as it is where packages are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

PROGRAMS = Path(__file__).parent / "start_programs"
NAMES = ("toy_loops", "cute_layer_norm", "cute_matmul")


def run(program: Path, cache: Path, bytecode: Path) -> tuple[float, float, Any]:
    """Milliseconds of the first call and of the process, and what was "compiled" and "loaded"."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"BASEDSL_CACHE": "1", "BASEDSL_CACHE_DIR": str(cache)}
    environment |= {"PYTHONPYCACHEPREFIX": str(bytecode)}
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=True
    )
    whole = (perf_counter() - start) * 1e3
    first, counts = json.loads(done.stdout.splitlines()[-1])
    return first, whole, counts


def measure(name: str, repeat: int) -> list[list[tuple[float, float]]]:
    """(first call, process) of `repeat` cold and of as many warm starts."""
    cold: list[tuple[float, float]] = []
    warm: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        bytecode = Path(folder, "bytecode")
        for cache in ("prime", "prime"):
            run(PROGRAMS / f"{name}.py", Path(folder, cache), bytecode)
        for i in range(repeat):
            for taken, expected in ((cold, {"compiled": 1}), (warm, {"loaded": 1})):
                first, whole, counts = run(PROGRAMS / f"{name}.py", Path(folder, f"{i}"), bytecode)
                assert counts == expected, counts
                taken.append((first, whole))
    return [cold, warm]


def report(repeat: int, names: Sequence[str] = NAMES) -> None:
    print(f"{'a new process, ms':<18} {'compiled':>9} {'loaded':>7} {'ratio':>6}", end="")
    print(f" {'process, compiled':>18} {'loaded':>7} {'ratio':>6}")
    for name in names:
        cold, warm = measure(name, repeat)
        medians = [
            statistics.median(one[i] for one in taken) for i in (0, 1) for taken in (cold, warm)
        ]
        first, loaded, whole, whole_loaded = medians
        print(
            f"{name:<18} {first:9.0f} {loaded:7.1f} {first / loaded:6.1f}"
            f" {whole:18.0f} {whole_loaded:7.0f} {whole / whole_loaded:6.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("program", nargs="*", default=NAMES, choices=(*NAMES, NAMES))
    chosen = parser.parse_args()
    report(chosen.repeat, chosen.program)


if __name__ == "__main__":
    main()
