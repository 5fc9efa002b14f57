"""Times compiling from a script and from under many calls, as pytest and notebooks compile.

    python bench/deep_stack.py

Prints, for several depths, the processor time of one compilation of a GEMM for the simulator over
that at depth 0, and the pages that it touched for the first time: chunks of Python's stack that are
mapped again and again (`basedsl/frame_stack.py`) show in both.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from functools import partial
from statistics import median

os.environ |= {"CUTE_DSL_ARCH": "sim", "BASEDSL_CACHE": "0"}

import numpy as np

from basedsl_cute.ops.ampere.gemm import Config, gemm

REPEATS = 5


def under(depth: int, call: Callable[[], None]) -> None:
    """Call `call` from under that many calls."""
    if depth:
        under(depth - 1, call)
    else:
        call()


def compile_gemm(swizzle: int) -> None:
    """Compile a GEMM that no earlier call compiled, and run it once on one small tile."""
    a, b, c = (np.zeros((1, 64, n), np.float16).transpose(1, 2, 0) for n in (32, 32, 64))
    gemm(a, b, c, 1, Config((64, 64, 32), (1, 2), swizzle=swizzle), None, (), (8, 8, 8), None)


def main() -> None:
    found: dict[int, list[tuple[float, int]]] = {depth: [] for depth in (0, 20, 30, 40, 60, 100)}
    compile_gemm(1)
    swizzle = 1
    for _ in range(REPEATS):
        for depth, times in found.items():
            swizzle += 1
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            start = time.process_time()
            under(depth, partial(compile_gemm, swizzle))
            taken = time.process_time() - start
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
            times.append((taken, faults))
    base = median(taken for taken, _ in found[0])
    for depth, times in found.items():
        taken, faults = (median(column) for column in zip(*times, strict=True))
        print(f"depth {depth:3}: {taken / base:.2f} ({taken:.2f} s), {faults:.0f} page faults")


if __name__ == "__main__":
    main()
