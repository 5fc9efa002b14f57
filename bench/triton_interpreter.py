"""Kernels of `bench/simulator.py` for Triton's interpreter, which runs blocks on a CPU with NumPy.

`peers(arrays)` needs the packages triton and torch; the interpreter checks no races.
"""

import os
from collections.abc import Callable

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, z, size, block: tl.constexpr):
    """Add a block of elements."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < size
    tl.store(z + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def softmax_kernel(x, y, columns: tl.constexpr):
    """Normalise a row."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    row = tl.load(x + at)
    wide = tl.exp(row - tl.max(row, 0))
    tl.store(y + at, wide / tl.sum(wide, 0))


@triton.jit
def product_kernel(a, b, c, m: tl.constexpr, n: tl.constexpr, k: tl.constexpr):
    """Multiply a tile by the transpose of another one."""
    row, column, depth = tl.arange(0, m), tl.arange(0, n), tl.arange(0, k)
    left = tl.load(a + row[:, None] * k + depth[None, :])
    right = tl.load(b + column[None, :] * k + depth[:, None])
    tl.store(c + row[:, None] * n + column[None, :], tl.dot(left, right))


def peers(x, y, z, rows, out, left, right, tile) -> dict[str, Callable[[], None]]:
    """Calls by the names of the simulator's kernels, on the same NumPy arrays."""
    x, y, z, rows, out, left, right, tile = map(
        torch.from_numpy, (x, y, z, rows, out, left, right, tile)
    )
    size, (count, columns) = x.numel(), rows.shape
    m, k = left.shape
    n = right.shape[0]
    return {
        "add of 2^20": lambda: add_kernel[(size // 256,)](x, y, z, size, 256),
        "add of 2^20 by blocks of 16384": lambda: add_kernel[(size // 16384,)](
            x, y, z, size, 16384
        ),
        "softmax 256 x 1024": lambda: softmax_kernel[(count,)](rows, out, columns),
        "mma.sync tile of 128 x 128 x 64": lambda: product_kernel[(1,)](left, right, tile, m, n, k),
    }
