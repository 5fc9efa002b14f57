"""Programs in the tile DSL: a saxpy, a softmax by rows, a matrix product.

python examples/tile/programs.py
"""

import os
import sys

import numpy as np

from basedsl import Float32

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiles as tile


@tile.kernel
def saxpy_block(a, x, y):
    at = tile.program_id(0) * 256
    tile.store(y, at, tile.load(x, at, 256) * a + tile.load(y, at, 256))


@tile.jit
def saxpy(a: Float32, x, y):
    saxpy_block(a, x, y).launch(grid=tile.cdiv(x.shape[0], 256))


@tile.kernel
def softmax_row(x, y, width: tile.Constexpr):
    row = tile.program_id(0)
    values = tile.load(x, (row, 0), (1, width), other=-1e30)
    powers = tile.exp(values - values.max(1).expanded(1))
    tile.store(y, (row, 0), powers / powers.sum(1).expanded(1))


@tile.jit
def softmax(x, y, width: tile.Constexpr):
    softmax_row(x, y, width).launch(grid=x.shape[0])


@tile.kernel
def matmul_block(a, b, c, m: tile.Constexpr, n: tile.Constexpr, k: tile.Constexpr):
    row, col = tile.program_id(1) * m, tile.program_id(0) * n
    acc = tile.full((m, n), 0, Float32)
    for i in range(tile.cdiv(a.shape[1], k)):
        left = tile.load(a, (row, i * k), (m, k))
        right = tile.load(b, (i * k, col), (k, n))
        acc = tile.dot(left, right, acc)
    tile.store(c, (row, col), acc)


@tile.jit
def matmul(a, b, c):
    m, n, k = 8, 32, 8
    grid = tile.cdiv(c.shape[1], n), tile.cdiv(c.shape[0], m)
    matmul_block(a, b, c, m, n, k).launch(grid=grid)


@tile.kernel
def keep_positive_block(x, y):
    at = tile.program_id(0) * 64
    values = tile.load(x, at, 64)
    tile.store(y, at, values, mask=values > 0)


@tile.jit
def keep_positive(x, y):
    keep_positive_block(x, y).launch(grid=tile.cdiv(x.shape[0], 64))


def main():
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 1000), np.float32)
    expected = 2.5 * x + y
    saxpy(2.5, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)

    rows = random.standard_normal((37, 50), np.float32)
    made = np.empty_like(rows)
    softmax(rows, made, 64)
    powers = np.exp(rows - rows.max(1, keepdims=True))
    np.testing.assert_allclose(made, powers / powers.sum(1, keepdims=True), rtol=1e-5)

    a = random.standard_normal((100, 70), np.float32)
    b = random.standard_normal((70, 90), np.float32)
    c = np.empty((100, 90), np.float32)
    matmul(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)

    z = np.full_like(x, 7)
    keep_positive(x, z)
    np.testing.assert_array_equal(z, np.where(x > 0, x, 7))
    print("saxpy, softmax, matmul and a masked store agree with NumPy")


if __name__ == "__main__":
    main()
