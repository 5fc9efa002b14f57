"""The cost of a call, against numba, and first calls in new processes (`starts.py`).

    python bench/calls.py            # pip install 'basedsl[bench]' for the peer

All functions are called in turn, batch by batch, on fresh arguments; shown are medians of batches
and their ratios. The empty loop is subtracted from both sides. On a GPU, launches of a kernel of
one block are compared with the driver's own: see `gpu_calls.py`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import gpu_calls
import numpy as np
import starts

import basedsl_toy as toy

BATCHES, CALLS, STARTS = 41, 2000, 5


def add(a, b):
    return a + b


def first(a):
    return a[0]


TABLE = np.arange(5.0)


def scaled(a):
    return a[0] * float(TABLE[2])


def scale() -> Any:
    """Return an object whose method is compiled with it static: of a class of its own, since calls
    try the compilations for a class's other objects too.
    """

    class Scale:
        def __init__(self) -> None:
            self.n = 3

        @toy.jit
        def times(self, x):
            return x * self.n

    return Scale()


def programs() -> dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]]:
    """Name -> function, and the arguments of batch number i."""
    ints, array = lambda i: (i, i + 1), lambda i: (np.arange(10.0) + i,)
    compiled = toy.compile(toy.jit(add), 1, 2)
    named = toy.jit(add)
    looked_up = scale()
    found: dict[str, Any] = {
        "empty": (lambda *args: None, ints),
        "two ints": (toy.jit(add), ints),
        "two ints, compiled object": (compiled, ints),
        "one array": (toy.jit(first), array),
        "one array, one captured": (toy.jit(scaled), array),
        "one int, method": (scale().times, lambda i: (i,)),
        "one int, method looked up": (lambda x: looked_up.times(x), lambda i: (i,)),
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
    starts.report(1 if quick else STARTS)
    gpu_calls.report(5 if quick else BATCHES)


if __name__ == "__main__":
    main()
