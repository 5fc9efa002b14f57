"""Random problems for the Hopper GEMM, checked against float64.

    python tests/cute/hopper/random_gemm.py [--count 200] [--workers 8] [--seed N]

runs that many on the current target, in several processes. What may differ between two problems is
everything that the kernel knows: types, contiguous modes, ragged shapes, batches, padding between
rows, tiles, clusters, stages, the schedule, an epilogue. Inputs are fresh random numbers. C and
what lies between its rows are full of rubbish, which must be gone within C and unchanged outside.
"""

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.hopper_gemm import Config, gemm
from basedsl_cute.utils.epilogue import per_column

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
OUTPUTS = {
    np.float16: (np.float16, np.float32),
    BF16: (BF16, np.float32),
    E4M3: (np.float16, BF16, np.float32),
    E5M2: (np.float16, BF16, np.float32),
    np.int8: (np.int32, np.float32),
    np.uint8: (np.int32,),
    np.float32: (np.float32, np.float16),
}
RUBBISH = 77


@dataclass
class Problem:
    """One product and the configuration that computes it."""

    shape: tuple[int, int, int]
    dtype: Any
    out: Any
    columns: tuple[bool, bool, bool]  # of A, B, C: whether mode 0 is contiguous
    batch: int | None
    blocks: int
    has_bias: bool
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        names = np.dtype(self.dtype).name, np.dtype(self.out).name
        return (
            f"{self.shape} {names[0]} -> {names[1]}, mode 0 contiguous in A, B, C: {self.columns}, "
            f"batch {self.batch}, {self.blocks} blocks, bias {self.has_bias}, {self.options}"
        )


def draw(seed, largest=1500):
    """A problem that the kernel promises to compute, of extents up to `largest`."""
    rng = np.random.default_rng(seed)

    def one(values):
        values = list(values)
        return values[rng.integers(len(values))]

    dtype = one(OUTPUTS)
    out = one(OUTPUTS[dtype])
    size = np.dtype(dtype).itemsize
    options = configuration(rng, one, size, np.dtype(out).itemsize)
    may_transpose = size == 2
    columns = tuple(bool(rng.integers(2)) and may_transpose for _ in range(2))
    columns = (*columns, bool(rng.integers(2)))
    # A contiguous mode is a multiple of 16 bytes, so that strides are.
    unit = 16 // min(size, np.dtype(out).itemsize)
    shape = tuple(int(rng.integers(1, largest // unit)) * unit for _ in range(3))
    batch = one((None, None, 1, 3))
    has_bias = bool(rng.integers(3) == 0)
    return Problem(shape, dtype, out, columns, batch, int(one((3, 16, 132))), has_bias, options)


def configuration(rng, one, size, out_size):
    """Arguments of a `Config` that fits into shared memory."""
    while True:
        turns = bool(rng.integers(4) == 0)
        consumers = int(one((1, 2, 2, 2, 3)))
        rows = 64 * (1 if turns else consumers) * int(one((1, 1, 2)))
        columns = int(one((32, 64, 96, 128, 192, 256)))
        if rows > 256 or rows * columns > 64 * 256 * (1 if turns else consumers):
            continue
        if consumers == 3 and columns * rows // (64 * (1 if turns else 3)) > 128:
            continue  # 152 registers for each thread
        stages = int(one((2, 3, 4, 5)))
        options = {
            "tile": (rows, columns, int(one((64, 128))) // size),
            "stages": stages,
            "consumers": consumers,
            "takes_turns": turns,
            "cluster": one(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2))),
            "swizzle": int(one((1, 4, 8))),
            "along_m": bool(rng.integers(2)),
            "slots": int(one((1, 2, 3))),
            "overlap": bool(rng.integers(4)),
        }
        loads = stages * (rows + columns) * options["tile"][2] * size
        pieces = options["slots"] * consumers * 64 * 128 * max(1, out_size // 2)
        if loads + pieces < 220 * 1024:
            return options


def bias(acc, x):
    return acc + x


@cute.jit
def with_bias(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, x: cute.Tensor, blocks: cute.Int32,
    cfg: cute.Constexpr,
):  # fmt: skip
    gemm(a, b, c, blocks, cfg, bias, (per_column(x, c.shape),))


def matrix(rng, dtype, rows, columns, mode0, batch, pad):
    """A matrix, and the whole of the memory that it is a part of."""
    across, down = (rows, columns) if mode0 else (columns, rows)
    whole = (batch or 1, down, across + pad)
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -60
        memory = rng.integers(low, 60, whole).astype(dtype)
    else:
        memory = rng.standard_normal(whole).astype(dtype)
    part = memory[:, :, :across]
    part = part.transpose(2, 1, 0) if mode0 else part.transpose(1, 2, 0)
    return (part if batch else part[:, :, 0]), memory


def run(problem, seed=None):
    """Compute it; AssertionError where C is wrong or something else was written."""
    rng = np.random.default_rng(seed)
    m, n, k = problem.shape
    size, out_size = np.dtype(problem.dtype).itemsize, np.dtype(problem.out).itemsize
    pads = [int(rng.integers(3)) * 16 // x for x in (size, size, out_size)]
    sides = ((m, k), (n, k), (m, n))
    dtypes = (problem.dtype, problem.dtype, problem.out)
    (a, _), (b, _), (c, memory) = (
        matrix(rng, dtype, *side, mode0, problem.batch, pad)
        for dtype, side, mode0, pad in zip(dtypes, sides, problem.columns, pads, strict=True)
    )
    memory.fill(RUBBISH)
    cfg = Config(**problem.options)
    exact = product(a, b, problem.dtype)
    x = rng.integers(-9, 9, n).astype(np.int32 if problem.out is np.int32 else np.float32)
    if np.dtype(problem.dtype).kind not in "iu" or problem.out is np.int32:
        x = x.astype(np.int32 if np.dtype(problem.dtype).kind in "iu" else np.float32)
    if problem.has_bias:
        with_bias(a, b, c, x, problem.blocks, cfg)
        exact = exact + x.astype(np.float64)[:, None] if problem.batch else exact + x
    else:
        gemm(a, b, c, problem.blocks, cfg)
    cute.synchronize()
    np.testing.assert_allclose(c.astype(np.float64), exact, **tolerance(problem, a, b))
    c[...] = RUBBISH
    assert (memory == np.asarray(RUBBISH, memory.dtype)).all(), "written outside of C"


def product(a, b, dtype):
    if dtype is np.float32:  # wgmma reads the upper 19 bits
        a, b = (upper_bits(x) for x in (a, b))
    return np.einsum("mk...,nk...->mn...", a.astype(np.float64), b.astype(np.float64))


def upper_bits(x):
    return (np.ascontiguousarray(x).view(np.uint32) & 0xFFFFE000).view(np.float32)


def tolerance(problem, a, b):
    """Rounding of the output, and of sums: of 8-bit floats Hopper's have 14 bits or so."""
    if np.dtype(problem.out).kind in "iu":
        return {"rtol": 0, "atol": 0}
    k = problem.shape[2]
    rtol = float(ml_dtypes.finfo(problem.out).eps)
    atol = (2**-9 if problem.dtype in (E4M3, E5M2) else 2**-19) * k**0.5 * 8 + 1e-4
    return {"rtol": rtol, "atol": atol}


# As a program ------------------------------------------------------------------------------------


def attempt(seed):
    problem = draw(seed)
    try:
        run(problem, seed)
    except Exception as error:
        return seed, str(problem), f"{type(error).__name__}: {str(error)[:600]}"
    return seed, str(problem), None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"{options.count} problems from seed {options.seed}: {cute.target_description()}")
    seeds = range(options.seed, options.seed + options.count)
    failed = 0
    # Spawned: a process that has asked for a driver cannot share it with forked ones.
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        for seed, problem, error in pool.map(attempt, seeds):
            if error is not None:
                failed += 1
                if failed <= 10:
                    print(f"seed {seed}: {problem}\n    {error}", flush=True)
    print(f"{options.count - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
