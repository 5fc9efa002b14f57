"""RMSNorm and LayerNorm of `ops` against float64, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import layer_norm, rms_norm
from basedsl_cute.ops.layer import rows
from basedsl_cute.ops.layer.norm import norm_backward

EPS = 1e-5


def exact(x, weight, bias, *, is_centred):
    x = x.astype(np.float64)
    x = x - x.mean(-1, keepdims=True) if is_centred else x
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


def arrays(rows, columns, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*rows, columns)) * 2 + 1
    return x.astype(dtype), *(rng.standard_normal(columns).astype(np.float32) for _ in range(2))


# One row, several of a block, several threads with several vectors, no whole vector, one element.
SHAPES = [((3,), 8), ((2, 5), 52), ((3,), 1032), ((5,), 7), ((2,), 1)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_norms(rows, columns):
    x, weight, bias = arrays(rows, columns)
    found = layer_norm(x, weight, bias, eps=EPS)
    np.testing.assert_allclose(found, exact(x, weight, bias, is_centred=True), atol=2e-5)
    found = rms_norm(x, weight, eps=EPS)
    np.testing.assert_allclose(found, exact(x, weight, None, is_centred=False), atol=2e-5)


def test_with_a_residual():
    x, weight, _ = arrays((4,), 40, np.float16)
    residual, *_ = arrays((4,), 40, np.float16, seed=1)
    y, z = rms_norm(x, weight, residual=residual, eps=EPS)
    np.testing.assert_array_equal(z, x + residual)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, exact(z, weight, None, is_centred=False), atol=4e-3)


def test_a_row_of_a_cluster_of_blocks(monkeypatch):
    monkeypatch.setattr(rows, "_ALONE", 64)
    monkeypatch.setattr(rows, "_SHARE", 64)
    x, weight, bias = arrays((5,), 236)
    found = layer_norm(x, weight, bias, eps=EPS)
    np.testing.assert_allclose(found, exact(x, weight, bias, is_centred=True), atol=2e-5)
    grad = arrays((5,), 236, seed=1)[0]
    for operation in ("rms_norm", "layer_norm"):
        found = norm_backward(operation, grad, x, weight, bias, EPS)
        wide, slope = x.astype(np.float64), grad * weight
        if operation == "layer_norm":
            wide -= wide.mean(1, keepdims=True)
        r = 1 / np.sqrt((wide**2).mean(1) + EPS)[:, None]
        normal = wide * r
        wanted = slope - normal * (slope * normal).mean(1, keepdims=True)
        if operation == "layer_norm":
            wanted -= slope.mean(1, keepdims=True)
        np.testing.assert_allclose(found.x, r * wanted, atol=1e-5)
        np.testing.assert_allclose(found.weight, (grad * normal).sum(0), atol=1e-4)
        np.testing.assert_allclose(found.bias, grad.sum(0), atol=1e-4)


def slopes(function, x, grad, step=1e-6):
    """The gradient of the sum of grad * function(x), by differences."""
    out = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        moved = np.zeros(x.shape)
        moved[place] = step
        out[place] = (grad * (function(x + moved) - function(x - moved))).sum() / (2 * step)
    return out


@pytest.mark.parametrize("operation", ["rms_norm", "layer_norm"])
def test_gradients(operation):
    x, weight, bias = arrays((9,), 12)
    grad, more = arrays((9,), 12, seed=1)[0], arrays((9,), 12, seed=2)[0]
    is_centred = operation == "layer_norm"
    wide, bias = x.astype(np.float64), bias if is_centred else None
    found = norm_backward(operation, grad, x, weight, bias, EPS, more)

    def of_x(z):
        return exact(z, weight, bias, is_centred=is_centred)

    def of_weight(w):
        return exact(wide, w, bias, is_centred=is_centred)

    np.testing.assert_allclose(found.x, slopes(of_x, wide, grad) + more, atol=1e-4)
    wanted = slopes(of_weight, weight.astype(np.float64), grad)
    np.testing.assert_allclose(found.weight, wanted, atol=1e-4)
    if is_centred:
        np.testing.assert_allclose(found.bias, grad.sum(0), atol=1e-5)
    else:
        assert found.bias is None


def test_gradients_of_many_rows_repeat():
    x, weight, bias = arrays((700,), 24)
    grad = arrays((700,), 24, seed=1)[0]
    first = norm_backward("layer_norm", grad, x, weight, bias, EPS)
    again = norm_backward("layer_norm", grad, x, weight, bias, EPS)
    np.testing.assert_array_equal(first.weight, again.weight)
    np.testing.assert_allclose(first.bias, grad.astype(np.float64).sum(0), rtol=1e-5)


def test_odd_arrays():
    x, weight, _ = arrays((6,), 24)
    wanted = exact(x, weight, None, is_centred=False)
    np.testing.assert_allclose(rms_norm(x[::2], weight, eps=EPS), wanted[::2], atol=1e-5)
    np.testing.assert_allclose(rms_norm(x[0], weight, eps=EPS), wanted[0], atol=1e-5)
    assert rms_norm(np.empty((0, 24), np.float32), weight).shape == (0, 24)
    shifted = np.empty(25, np.float32)[1:]
    shifted[:] = weight
    np.testing.assert_allclose(rms_norm(x, shifted, eps=EPS), wanted, atol=1e-5)
    x[1, 3], x[2, 4] = np.nan, np.inf
    found = rms_norm(x, weight, eps=EPS)
    assert np.isnan(found[1]).all()
    assert np.isnan(found[2]).any()
    np.testing.assert_allclose(found[3:], wanted[3:], atol=1e-5)


def test_what_does_not_fit():
    x, weight, bias = arrays((4,), 8)
    with pytest.raises(DSLTypeError, match=r"rms_norm: weight is \(7,\), not \(8,\)"):
        rms_norm(x, weight[:7])
    with pytest.raises(DSLTypeError, match=r"layer_norm: residual is \(3, 8\), not \(4, 8\)"):
        layer_norm(x, weight, bias, residual=x[:3])
    with pytest.raises(DSLTypeError, match="layer_norm: x is of Int32"):
        layer_norm(x.astype(np.int32))
    with pytest.raises(DSLTypeError, match="has no rows of elements"):
        rms_norm(np.empty((3, 0), np.float32))
    with pytest.raises(DSLTypeError, match="a row has 300000 elements"):
        rms_norm(np.empty((1, 300000), np.float32))
    with pytest.raises(DSLTypeError, match="residual is of float16, and x of float32"):
        rms_norm(x, residual=x.astype(np.float16))
    with pytest.raises(DSLTypeError, match="takes arrays of PyTorch, CuPy, JAX or NumPy"):
        rms_norm([1.0, 2.0])
