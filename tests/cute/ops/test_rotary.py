"""Rotary embedding of `ops` against NumPy, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import rotary


def exact(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    y = x.astype(np.float64)
    cos, sin = cos[:, None], sin[:, None]  # of all heads
    first = np.s_[..., 0 : 2 * pairs : 2] if interleaved else np.s_[..., :pairs]
    second = np.s_[..., 1 : 2 * pairs : 2] if interleaved else np.s_[..., pairs : 2 * pairs]
    one, other = y[first].copy(), y[second].copy()
    y[first], y[second] = one * cos - other * sin, other * cos + one * sin
    return y


def tables(positions, pairs):
    angles = np.arange(positions)[:, None] * 10.0 ** -np.arange(pairs)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


# A head's elements that turn, all of them or fewer; vectors of 4, 2 and 1 pairs.
@pytest.mark.parametrize(("head", "pairs"), [(16, 8), (24, 8), (20, 6), (6, 3)])
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(head, pairs, interleaved):
    x = np.random.default_rng(0).standard_normal((2, 5, 3, head)).astype(np.float32)
    cos, sin = tables(5, pairs)
    found = rotary(x, cos, sin, interleaved=interleaved)
    np.testing.assert_allclose(found, exact(x, cos, sin, interleaved=interleaved), atol=1e-6)
    back = rotary(found, cos, sin, interleaved=interleaved, inverse=True)
    np.testing.assert_allclose(back, x, atol=1e-6)


def test_odd_arrays():
    x = np.random.default_rng(0).standard_normal((5, 6, 16)).astype(np.float16)
    cos, sin = tables(5, 8)
    wanted = exact(x, cos, sin)
    np.testing.assert_allclose(rotary(x[:, ::2], cos, sin), wanted[:, ::2], atol=2e-3)
    assert rotary(x[:0], cos[:0], sin[:0]).shape == (0, 6, 16)


def test_what_does_not_fit():
    x = np.zeros((5, 3, 8), np.float32)
    cos, sin = tables(5, 4)
    with pytest.raises(DSLTypeError, match="both are"):
        rotary(x, cos[:4], sin[:4])
    with pytest.raises(DSLTypeError, match="6 pairs do not fit a head of 8 elements"):
        rotary(x, *tables(5, 6))
    with pytest.raises(DSLTypeError, match=r"rotary: x is \(3, 8\)"):
        rotary(x[0], cos, sin)
    with pytest.raises(DSLTypeError, match="rotary: x is of Int64"):
        rotary(x.astype(np.int64), cos, sin)
