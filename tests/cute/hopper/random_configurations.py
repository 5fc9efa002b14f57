"""Random configurations of the matrix products in `ops`, against float64.

    python tests/cute/hopper/random_configurations.py --count 200 --seed 1 --jobs 16

Rows of A and B are followed by NaN (or other integers) that must not be read, C is full of rubbish,
which must be gone, and its rows are followed by rubbish that must stay. Bounds are elementwise:
rounding to C's type, and of every sum of K products in the precision that the hardware adds with,
in any order. `--only N` runs one case again.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
import time
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
from random_cases import BF16, E4M3, E5M2, F16, F32, KERNELS, Case, Draw
from random_grouped import Grouped
from random_parts import Parts

import basedsl_cute as cute

KERNELS["grouped"] = Grouped()
KERNELS["parts"] = Parts()

# Sums are made of float32, and less on Hopper's tensor cores: relative to the sum of the products'
# magnitudes, of 16-bit floats and tf32, and of 8-bit floats (13 bits behind the largest one).
PRECISION = {F16: 2.0**-20, BF16: 2.0**-20, F32: 2.0**-20, E4M3: 2.0**-11, E5M2: 2.0**-11}


def poison(dtype: np.dtype) -> Any:
    return 99 if dtype.kind in "iu" else np.nan


def matrix(case: Case, which: int, fill: Any) -> tuple[Any, Any]:
    """A poisoned buffer (batches, rows, row with a gap), and in it the matrix (rows, columns[, L])
    full of what `fill` gives for a shape.
    """
    m, n, k = case.shape
    rows, columns = ((m, k), (n, k), (m, n))[which]
    dtype = case.types[which]
    outer, inner = (columns, rows) if case.transposed[which] else (rows, columns)
    unit = 16 // dtype.itemsize
    pitch = -(-inner // unit) * unit + case.gaps[which] * unit
    whole = np.full((case.batches or 1, outer, pitch), poison(dtype), dtype)
    part = whole[:, :, :inner]
    part[...] = fill(part.shape)
    x = part.transpose(2, 1, 0) if case.transposed[which] else part.transpose(1, 2, 0)
    return whole, x if case.batches is not None else x[:, :, 0]


def attempt(draw: Draw, number: int) -> float:
    """Run a case; the largest error as a part of its bound. AssertionError if beyond."""
    return run(draw.case(number), np.random.default_rng([draw.seed, number, 1]))


def run(case: Case, rng: Any) -> float:
    def values(dtype: np.dtype) -> Any:
        def fill(shape: Any) -> Any:
            if dtype.kind in "iu":
                limits = np.iinfo(dtype)
                return rng.integers(limits.min, limits.max + 1, shape)
            return rng.standard_normal(shape).astype(dtype)

        return fill

    _, a = matrix(case, 0, values(case.types[0]))
    _, b = matrix(case, 1, values(case.types[1]))
    rubbish = 77 if case.types[2].kind in "iu" else -3.0
    whole, c = matrix(case, 2, lambda shape: np.full(shape, rubbish))
    m, n, _ = case.shape
    extras = {
        "bias": rng.standard_normal(n).astype(np.float32),
        "scale": rng.uniform(1, 2, m).astype(np.float32),
        "x": rng.standard_normal(c.shape).astype(np.float32),
        "shift": 3.0,
    }
    before = whole.copy()
    KERNELS[case.kernel].run(case, a, b, c, extras)
    cute.synchronize()

    exact, bound = expected(case, a, b, extras)
    error = np.abs(c.astype(np.float64) - exact)
    if not (error <= bound).all():  # a NaN is not below
        at = np.unravel_index(int(np.argmax(~(error <= bound))), c.shape)
        wrong = int((~(error <= bound)).sum())
        raise AssertionError(
            f"{wrong} of {c.size} elements are wrong, the first at {tuple(map(int, at))}: "
            f"{c[at]} instead of {exact[at]} +- {bound[at]}"
        )
    pitch = c.shape[0] if case.transposed[2] else c.shape[1]
    same = whole[:, :, pitch:].tobytes() == before[:, :, pitch:].tobytes()
    assert same, "something was written behind the rows of C"
    return float((error / np.maximum(bound, 1e-300)).max())


def expected(case: Case, a: Any, b: Any, extras: dict[str, Any]) -> tuple[Any, Any]:
    """C in float64, and how far from it each element may be."""
    left, right = ((x if case.kernel == "sgemm" else as_read(x)).astype(np.float64) for x in (a, b))
    exact = product(left, right)
    if case.types[0].kind in "iu":
        bound = np.zeros(exact.shape)
    else:
        bound = PRECISION[case.types[0]] * product(np.abs(left), np.abs(right))
    column, row = (slice(None), None), (None, slice(None))
    if exact.ndim == 3:
        column, row = (*column, None), (*row, None)
    if case.epilogue == "bias_relu":
        exact = exact + extras["bias"][row]
        bound = bound + 2.0**-22 * np.abs(exact)
        exact = np.maximum(exact, 0)
    elif case.epilogue == "scaled_residual":
        scale = extras["scale"].astype(np.float64)[column] * 0.5
        bound = bound * scale + 2.0**-21 * (np.abs(exact) * scale + np.abs(extras["x"]) + 3)
        exact = exact * scale + extras["x"] + extras["shift"]
    out = case.types[2]
    if out.kind in "iu":
        return (np.trunc(exact), bound + 1) if case.epilogue != "none" else (exact, bound)
    info = ml_dtypes.finfo(out)
    exact = np.clip(exact, float(info.min), float(info.max)) if out == E4M3 else exact
    return exact, bound + float(info.eps) * np.abs(exact) + float(info.smallest_subnormal)


def as_read(x: Any) -> Any:
    """Operands of float32 without the bits that tf32 does not have."""
    if x.dtype != F32:
        return x
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def product(a: Any, b: Any) -> Any:
    if a.ndim == 2:
        return a @ b.T
    return (a.transpose(2, 0, 1) @ b.transpose(2, 1, 0)).transpose(1, 2, 0)


# The program --------------------------------------------------------------------------------------


def one(draw: Draw, number: int) -> tuple[int, str, float]:
    """The number, what went wrong (or nothing), and the error as a part of its bound."""
    try:
        return number, "", attempt(draw, number)
    except Exception as error:
        return number, f"{type(error).__name__}: {error}", 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, default=None, help="one case, by its number")
    parser.add_argument("--small", action="store_true", help="such as the simulator can do")
    parser.add_argument("--kernels", nargs="*", default=(), choices=list(KERNELS))
    parser.add_argument("--without", nargs="*", default=(), help="options not to be drawn")
    parser.add_argument("--seconds", type=float, default=240, help="what does not end, has failed")
    given = parser.parse_args()
    draw = Draw(given.seed, given.small, tuple(given.kernels), tuple(given.without))
    if given.only is not None:
        print(draw.case(given.only), flush=True)
        print(f"error / bound: {attempt(draw, given.only):.3f}")
        return 0

    started = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    results: dict[int, tuple[str, float]] = {}
    with context.Pool(given.jobs) as pool:  # leaving it ends processes that wait for a kernel, too
        coming = pool.imap_unordered(functools.partial(one, draw), range(given.count))
        for _ in range(given.count):
            try:
                left = given.seconds - (time.perf_counter() - started)
                number, text, ratio = coming.next(timeout=max(0.0, left))
            except multiprocessing.TimeoutError:
                break
            results[number] = text, ratio
            if text:
                print(f"FAILED {number}: {draw.case(number)}\n  {text}", flush=True)
    for number in sorted(set(range(given.count)) - set(results)):
        print(f"DID NOT END {number}: {draw.case(number)}", flush=True)
    for line in summary(draw, given.count):
        print(line)
    right = [number for number, (text, _) in results.items() if not text]
    for kernel in dict.fromkeys(draw.case(i).kernel for i in right):
        ratio, worst = max((results[i][1], i) for i in right if draw.case(i).kernel == kernel)
        print(f"{kernel}: largest error / bound {ratio:.3f} (case {worst})")
    print(
        f"{len(right)} of {given.count} right, seed {given.seed}, on {cute.target_description()}, "
        f"{time.perf_counter() - started:.0f} s in {given.jobs} processes",
        flush=True,
    )
    return 0 if len(right) == given.count else 1


def summary(draw: Draw, count: int) -> list[str]:
    """The number of times that each choice was drawn."""
    cases = [draw.case(i) for i in range(count)]
    counts = {
        "kernels": Counter(c.kernel for c in cases),
        "A and B": Counter("*".join(t.name for t in c.types[:2]) for c in cases),
        "C": Counter(c.types[2].name for c in cases),
        "mode 0 contiguous in": Counter(
            "".join(x for x, t in zip("ABC", c.transposed, strict=True) if t) or "none"
            for c in cases
        ),
        "batches": Counter(str(c.batches) for c in cases),
        "epilogues": Counter(c.epilogue for c in cases),
        "clusters": Counter(str(c.options.get("cluster", "none")) for c in cases),
        "stages": Counter(str(c.options.get("stages", "none")) for c in cases),
        "tiles": {"different": len({c.options.get("tile") for c in cases})},
    }
    return [
        f"{what}: " + ", ".join(f"{name} {n}" for name, n in sorted(of.items()))
        for what, of in counts.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
