"""What a call costs, against numba; and a first call, compiled against loaded from the disk.

    python bench/calls.py            # pip install 'basedsl[bench]' for the peer

All functions are called in turn, batch by batch, on fresh arguments; shown are medians of batches
and their ratios. The empty loop is subtracted from both sides. On a GPU, launches of a kernel of
one block are compared with the driver's own: see `gpu_calls.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import gpu_calls
import numpy as np

import basedsl_toy as toy

BATCHES, CALLS, STARTS = 41, 2000, 5


def add(a, b):
    return a + b


def first(a):
    return a[0]


class Scale:
    """A method is compiled with its object static."""

    def __init__(self) -> None:
        self.n = 3

    @toy.jit
    def times(self, x):
        return x * self.n


def programs() -> dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]]:
    """Name -> function, and the arguments of batch number i."""
    ints, array = lambda i: (i, i + 1), lambda i: (np.arange(10.0) + i,)
    compiled = toy.compile(toy.jit(add), 1, 2)
    named = toy.jit(add)
    found: dict[str, Any] = {
        "empty": (lambda *args: None, ints),
        "two ints": (toy.jit(add), ints),
        "two ints, compiled object": (compiled, ints),
        "one array": (toy.jit(first), array),
        "one int, method": (Scale().times, lambda i: (i,)),
        "two ints, by keyword": (lambda a, b: named(a=a, b=b), ints),
    }
    try:
        import numba
    except ImportError:
        print("numba is not installed: pip install 'basedsl[bench]'")
    else:
        found["numba: two ints"] = (numba.njit(add), ints)
        found["numba: one array"] = (numba.njit(first), array)
    return found


def batch(function: Callable[..., Any], args: tuple[Any, ...], calls: int) -> float:
    """Nanoseconds a call."""
    if len(args) == 1:
        (a,) = args
        start = perf_counter_ns()
        for _ in range(calls):
            function(a)
    else:
        a, b = args
        start = perf_counter_ns()
        for _ in range(calls):
            function(a, b)
    return (perf_counter_ns() - start) / calls


def measure_calls(batches: int) -> dict[str, float]:
    chosen = programs()
    taken: dict[str, list[float]] = {name: [] for name in chosen}
    for function, arguments in chosen.values():
        for i in range(4):
            function(*arguments(i))
    for i in range(batches):
        for name, (function, arguments) in chosen.items():
            taken[name].append(batch(function, arguments(i), CALLS))
    return {name: statistics.median(times) for name, times in taken.items()}


# A first call in a process ------------------------------------------------------------------------

START = """
import json, time
import numpy as np
import basedsl_toy as toy

@toy.jit
def escape(c: toy.Buffer[toy.Int64, 2], limit):
    height, width = c.shape
    for row in range(height):
        for col in range(width):
            x0, y0 = 3.0 * col / width - 2.0, 2.0 * row / height - 1.0
            x = y = 0.0
            n = 0
            while n < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                n += 1
            c[row, col] = n

@toy.jit
def smooth(a: toy.Buffer, b: toy.Buffer, rounds):
    n = len(a)
    for r in range(rounds):
        for i in range(1, n - 1):
            left, mid, right = a[i - 1], a[i], a[i + 1]
            value = 0.25 * left + 0.5 * mid + 0.25 * right
            if value > 1.0:
                value = 1.0
            elif value < -1.0:
                value = -1.0
            b[i] = value
        for i in range(1, n - 1):
            a[i] = b[i] if r % 2 == 0 else 0.5 * (a[i] + b[i])

@toy.jit
def both(c: toy.Buffer[toy.Int64, 2], a: toy.Buffer, b: toy.Buffer, limit):
    escape(c, limit)
    smooth(a, b, limit)
    total = 0
    for row in range(c.shape[0]):
        for col in range(c.shape[1]):
            total += c[row, col]
    return total

c, a, b = np.empty((4, 4), np.int64), np.arange(8.0), np.zeros(8)
start = time.perf_counter()
both(c, a, b, 5)
print(json.dumps([(time.perf_counter() - start) * 1e3, dict(toy.TOY.counts)]))
"""


def first_call(program: str, cache: str) -> tuple[float, dict[str, int]]:
    environment = {**os.environ, "BASEDSL_CACHE": "1", "BASEDSL_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=True
    )
    milliseconds, counts = json.loads(done.stdout)
    return milliseconds, counts


def measure_starts(times: int) -> tuple[float, float]:
    """Medians of the first call of a mid-sized kernel: compiled, and loaded; milliseconds."""
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        with open(program, "w") as file:
            file.write(START)
        for i in range(times):
            cache = os.path.join(folder, f"cache{i}")
            for taken, expected in ((cold, {"compiled": 1}), (warm, {"loaded": 1})):
                milliseconds, counts = first_call(program, cache)
                assert counts == expected, counts
                taken.append(milliseconds)
    return statistics.median(cold), statistics.median(warm)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer batches: does it run at all")
    quick = parser.parse_args().quick
    medians = measure_calls(5 if quick else BATCHES)
    empty = medians.pop("empty")
    print(f"{'call':<28} {'ns':>8} {'numba':>8} {'ratio':>7}")
    for name, nanoseconds in medians.items():
        if name.startswith("numba"):
            continue
        peer = medians.get(f"numba: {name.partition(',')[0]}")
        own = nanoseconds - empty
        if peer is None:
            print(f"{name:<28} {own:8.0f}")
        else:
            print(f"{name:<28} {own:8.0f} {peer - empty:8.0f} {own / (peer - empty):7.2f}")
    cold, warm = measure_starts(1 if quick else STARTS)
    print(f"first call, ms: compiled {cold:.0f}, loaded {warm:.0f}, ratio {cold / warm:.1f}")
    gpu_calls.report(5 if quick else BATCHES)


if __name__ == "__main__":
    main()
