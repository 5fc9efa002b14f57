"""A program that the debug adapter runs in tests: kernels without a `breakpoint()`."""

import os
import sys

import numpy as np

import basedsl_cute as cute


def squared(value):
    result = value * value
    return result


@cute.kernel
def sums_kernel(x: cute.Tensor, y: cute.Tensor):
    """Sums of the first elements."""
    thread = cute.arch.thread_idx()[0]
    total = cute.Float32(0)
    # every element up to the thread's own
    for i in range(thread + 1):
        total = total + x[i // 8, i % 8]
    square = squared(total)
    y[thread] = square


@cute.jit
def sums(given: cute.Tensor, result: cute.Tensor, times: cute.Int32):
    sums_kernel(given, result).launch(grid=(times, 1, 1), block=(64, 1, 1))


def main():
    x, y = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros(64, np.float32)
    print("begins", *sys.argv[1:], os.environ.get("WORD"), flush=True)
    sums(x, y, 1)
    print("right" if np.array_equal(y, np.cumsum(x.ravel()) ** 2) else "wrong")
    print("to stderr", file=sys.stderr)
    sys.exit(3)


if __name__ == "__main__":
    main()
