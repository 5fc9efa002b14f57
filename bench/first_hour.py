"""The first hour in numbers: messages for slips, installed sizes, imports, first calls.

    python bench/first_hour.py [--install]

Peers are what is installed of NumPy, numba, Triton and JAX, in this run; each time is the median of
processes that take turns. Imports are timed in processor seconds, which other work on the machine
disturbs less, and all packages have their bytecode, as pip leaves them. `--install` also installs
the packages of this checkout in new environments, once for the simulator and once with CUDA's
compiler, and measures sizes and seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 5

IMPORTS = {
    "numpy": "import numpy",
    "basedsl_cute": "import basedsl_cute",
    "basedsl_cute, and its first name": "import basedsl_cute as cute; cute.jit",
    "basedsl_cute, and a layout": "import basedsl_cute as cute; cute.make_layout(8)",
    "numba": "import numba",
    "triton": "import triton",
    "jax": "import jax",
}

FIRST_CALLS = {
    "basedsl_cute (simulator, empty cache)": """
import numpy as np, basedsl_cute as cute
@cute.kernel
def kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = x[i] * 2
@cute.jit
def double(x: cute.Tensor):
    kernel(x).launch(grid=1, block=64)
x = np.ones(64, np.float32); double(x); assert x[0] == 2
""",
    "numba (CPU, empty cache)": """
import numpy as np, numba
@numba.njit
def double(x):
    for i in range(x.size):
        x[i] = x[i] * 2
x = np.ones(64, np.float32); double(x); assert x[0] == 2
""",
    "jax (CPU)": """
import numpy as np, jax
assert jax.jit(lambda x: x * 2)(np.ones(64, np.float32))[0] == 2
""",
    "triton (interpreter, on the CPU)": """
import os; os.environ["TRITON_INTERPRET"] = "1"
import torch, triton, triton.language as tl
@triton.jit
def double(p, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(p + i, tl.load(p + i) * 2)
x = torch.ones(64); double[(1,)](x, 64); assert x[0] == 2
""",
}


def wall_seconds() -> float:
    return time.perf_counter()


def processor_seconds() -> float:
    """The processor time of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(program: str, folder: Path, clock: Callable[[], float]) -> float:
    """Run a program, a file as users have it, in a process of its own."""
    path = folder / "program.py"
    path.write_text(program)
    env = {**os.environ, "CUTE_DSL_ARCH": "sim", "BASEDSL_CACHE": "0"}
    env["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    start = clock()
    subprocess.run([sys.executable, path], check=True, env=env, stdout=subprocess.DEVNULL)
    return clock() - start


def alternating(programs: dict[str, str], clock: Callable[[], float]) -> dict[str, float]:
    """The median seconds of each program above those of an empty one. A first run that does not
    count writes the bytecode.
    """
    times: dict[str, list[float]] = {name: [] for name in ("", *programs)}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(RUNS + 1):
            for name in times:
                took = seconds(programs.get(name, "pass"), Path(folder), clock)
                if i:
                    times[name].append(took)
    empty = statistics.median(times.pop(""))
    return {name: statistics.median(all_) - empty for name, all_ in times.items()}


def available(programs: dict[str, str]) -> dict[str, str]:
    """The programs whose packages are installed here."""
    return {
        name: program
        for name, program in programs.items()
        if all(
            importlib.util.find_spec(package) is not None
            for package in re.findall(r"\b(numpy|numba|triton|torch|jax|basedsl_cute)\b", program)
        )
    }


def grades() -> tuple[int, float, int]:
    """The number of slips, the mean grade of their messages (of 3), and how many are silent."""
    spec = importlib.util.spec_from_file_location("slips", ROOT / "tests/errors/test_slips.py")
    assert spec is not None and spec.loader is not None
    slips = importlib.util.module_from_spec(spec)
    sys.modules["slips"] = slips
    spec.loader.exec_module(slips)
    os.environ.update(CUTE_DSL_ARCH="sim", BASEDSL_CACHE="0")
    points, silent = [], 0
    for i, slip in enumerate(slips.SLIPS):
        message = slips.run(slip, f"slip{i}.py")
        silent += message.silent
        points.append(sum(slips.grade(slip, message, f"slip{i}.py")))
    return len(points), statistics.mean(points), silent


def install(extra: str) -> tuple[float, dict[str, int]]:
    """Install this checkout in a new environment: seconds, and the largest packages in MB."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        source = Path(folder) / "source"
        files = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        for name in filter(None, files):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        command = [python, "-m", "pip", "install", "-q", ".", "plugins/toy", f"plugins/cute{extra}"]
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run(command, cwd=source, check=True, env=env)
        took = time.perf_counter() - start
        site = next((python.parents[1] / "lib").glob("python*")) / "site-packages"
        sizes = {path.name: _megabytes(path) for path in site.iterdir() if path.name != "pip"}
        return took, dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _megabytes(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return round(sum(file.stat().st_size for file in files) / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--install", action="store_true", help="measure new environments too")
    given = parser.parse_args()
    count, mean, silent = grades()
    print(f"messages: {count} slips, {mean:.2f} of 3 points on average, {silent} silent\n")
    for title, programs, clock in (
        ("import (processor time)", IMPORTS, processor_seconds),
        ("first call", FIRST_CALLS, wall_seconds),
    ):
        measured = alternating(available(programs), clock)
        first = next(iter(measured))
        print(f"| {title} | seconds | against {first} |\n|---|---|---|")
        for name, took in measured.items():
            print(f"| {name} | {took:.3f} | {took / measured[first]:.2f} |")
        print()
    if given.install:
        for extra in ("", "[cuda]"):
            took, sizes = install(extra)
            large = ", ".join(f"{name} {size}" for name, size in list(sizes.items())[:6])
            print(f"basedsl-cute{extra}: {sum(sizes.values())} MB in {took:.0f} s ({large})")


if __name__ == "__main__":
    main()
