"""Masks whose integers leave their type: they wrap, for tiles and spans as for single scores."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.ops import attention
from basedsl_cute.ops.flash.bounds import truth_of
from basedsl_cute.ops.flash.spans import span_of

sys.path.insert(0, str(Path(__file__).parent))

from test_bounds import tiles

LENGTH = 64
FAR = 2**31 - 40
# Masks, and if anything is known of a tile, and a span.
WRAPPING = {
    "a hash of keys": (lambda n: lambda b, h, q, k: k * 1103515245 > q, False, False),
    "two hashes": (lambda n: lambda b, h, q, k: q * 1103515245 > k * 12345, False, False),
    "a hash in a quotient": (lambda n: lambda b, h, q, k: (q * 1103515245) // 16 > k, False, True),
    "beyond the largest": (lambda n: lambda b, h, q, k: k + FAR >= q, False, False),
    "below the least": (lambda n: lambda b, h, q, k: q - k - FAR > 5, False, False),
    "distance": (lambda n: lambda b, h, q, k: abs(k - FAR - q) < FAR, False, False),
    "largest": (lambda n: lambda b, h, q, k: cute.max(k * 33554432, q) > 9, True, False),
    "a sum with a loaded one": (lambda n: lambda b, h, q, k: k + n[0] > q, False, False),
    "a difference from it": (lambda n: lambda b, h, q, k: k <= q - n[0], False, True),
    "a large one that stays": (lambda n: lambda b, h, q, k: k + 2**30 >= q + 2**30, True, True),
    "a product that stays": (lambda n: lambda b, h, q, k: k * 9999 >= q * 9999, True, False),
}


@cute.kernel
def looked_at(x: cute.Tensor, n: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    mask, arrays = cute.jit(make(n)), [(n, None)]
    if i < x.shape[0]:
        ranges = (x[i, 0], x[i, 1]), (x[i, 2], x[i, 3])
        truth = truth_of(mask, 0, (0, 0), *ranges, arrays=arrays)
        out[i, 0] = cute.Int64(truth.true)
        out[i, 1] = cute.Int64(truth.false)
    if i < LENGTH:
        span = span_of(mask, 0, 0, i, cute.Int32(3), arrays)
        out[i, 2] = cute.Int64(-1)
        if cute.const_expr(span is not None):
            out[i, 2] = cute.Int64(0 if span.low is None else span.low)
            out[i, 3] = cute.Int64(2**62 if span.high is None else span.high)


@cute.jit
def look(x: cute.Tensor, n: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    looked_at(x, n, out, make).launch(grid=(1, 1, 1), block=(128, 1, 1))


def shown(make, n):
    """The mask of all queries and keys, by NumPy's integers of 32 bits, which wrap."""
    q, k = np.mgrid[:LENGTH, :LENGTH].astype(np.int32)
    with np.errstate(over="ignore"):
        return make(n)(0, 0, q, k)


@pytest.mark.parametrize("name", WRAPPING)
def test_tiles_and_spans_of_numbers_that_wrap(name, monkeypatch):
    make, tells, is_span = WRAPPING[name]
    x, n = tiles(), np.int32([FAR])
    out = np.zeros((len(x), 4), np.int64)
    look(x, n, out, make)
    monkeypatch.setattr(cute, "max", np.maximum)
    expected = shown(make, n)
    for (q0, q1, k0, k1), (true, false, _, _) in zip(x.tolist(), out.tolist(), strict=True):
        tile = expected[q0 : q1 + 1, k0 : k1 + 1]
        assert true >= tile.any() and false >= (not tile.all()), (q0, k0)
    assert (out[:, :2].sum(1) < 2).any() == tells
    low, high = out[:LENGTH, 2:].T
    assert (low != -1).all() == is_span
    if is_span:
        keys = np.arange(LENGTH)
        np.testing.assert_array_equal((low[:, None] <= keys) & (keys < high[:, None]), expected)


@pytest.mark.parametrize("name", ["a hash of keys", "beyond the largest"])
def test_attention_of_masks_that_wrap(name):
    make, n = WRAPPING[name][0], np.int32([FAR])
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 1, LENGTH, 1, 32)).astype(np.float16)
    out = attention(q, k, v, mask=make(n))
    q, k, v = (x[0, :, 0].astype(np.float64) for x in (q, k, v))
    weights = np.exp(q @ k.T / 32**0.5) * shown(make, n)
    expected = weights @ v / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(out[0, :, 0], expected, atol=4e-3)
