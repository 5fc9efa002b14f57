"""Softmax of `ops` against float64, forward and backward, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import softmax
from basedsl_cute.ops.layer import rows
from basedsl_cute.ops.layer.softmax import softmax_backward


def exact(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normal(*shape, seed=0, dtype=np.float32):
    return (np.random.default_rng(seed).standard_normal(shape) * 5).astype(dtype)


# Several rows of a block, no whole vector, several warps.
@pytest.mark.parametrize("shape", [(3, 2, 40), (5, 7), (2, 1032)])
def test_softmax_and_its_gradient(shape):
    x, grad = normal(*shape), normal(*shape, seed=1)
    y = softmax(x)
    wanted = exact(x)
    np.testing.assert_allclose(y, wanted, rtol=2e-6, atol=1e-30)
    slope = wanted * (grad - (grad * wanted).sum(-1, keepdims=True))
    np.testing.assert_allclose(softmax_backward(grad, y), slope, atol=2e-6)


def test_a_row_of_a_cluster_of_blocks(monkeypatch):
    monkeypatch.setattr(rows, "_ALONE", 64)
    monkeypatch.setattr(rows, "_SHARE", 64)
    x, grad = normal(2, 231), normal(2, 231, seed=1)
    x[1, :40] = -np.inf
    y = softmax(x)
    np.testing.assert_allclose(y, exact(x), rtol=2e-6)
    slope = exact(x) * (grad - (grad * exact(x)).sum(-1, keepdims=True))
    np.testing.assert_allclose(softmax_backward(grad, y), slope, atol=2e-6)


def test_narrow_elements():
    x = normal(3, 64, dtype=np.float16)
    y = softmax(x)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, exact(x), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("columns", [40, 1032])
def test_elements_that_are_not_finite(columns):
    x = normal(6, columns)
    x[0] = -np.inf
    x[1, 3] = np.nan
    x[2, 3] = np.inf
    x[3, 1:] = -np.inf
    x[4, : columns // 2] = -np.inf
    x[5] = -200
    x[5, 0] = -np.inf
    y = softmax(x)
    assert np.isnan(y[:3]).all()
    np.testing.assert_allclose(y[3:], exact(x[3:]), rtol=2e-6)


def test_views_and_no_rows():
    x = normal(6, 40)
    np.testing.assert_allclose(softmax(x[::2, ::2]), exact(x[::2, ::2]), rtol=2e-6)
    assert softmax(x[:0]).shape == (0, 40)


def test_what_does_not_fit():
    with pytest.raises(DSLTypeError, match="softmax: x is of Int32"):
        softmax(np.ones((2, 4), np.int32))
    with pytest.raises(DSLTypeError, match="a row has 300000 elements; 262144 are the most"):
        softmax(np.empty((1, 300000), np.float32))
    with pytest.raises(DSLTypeError, match="its gradient is float16"):
        softmax_backward(normal(2, 4, dtype=np.float16), normal(2, 4))
