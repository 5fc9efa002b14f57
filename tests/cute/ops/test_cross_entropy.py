"""The linear cross-entropy of `ops` against float64, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import linear_cross_entropy
from basedsl_cute.ops.layer import cross_entropy


def exact(x, weight, targets):
    """The mean loss, and its gradients by x and weight; targets of -100 do not count."""
    x, weight = x.astype(np.float64), weight.astype(np.float64)
    logits = x @ weight.T
    counts = targets != -100
    shifted = logits - logits.max(1, keepdims=True)
    softmax = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    one = np.zeros_like(logits)
    one[np.arange(len(x))[counts], targets[counts]] = 1
    loss = -np.log(softmax[one == 1]).sum() / counts.sum()
    slopes = (softmax - one) * counts[:, None] / counts.sum()
    return loss, slopes @ weight, slopes.T @ x


@pytest.mark.parametrize(
    "classes", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in (2051, 3))]
)
def test_loss_and_gradients(classes, monkeypatch):
    monkeypatch.setattr(cross_entropy, "CHUNK_BYTES", 0)  # the least rows, so two chunks
    monkeypatch.setattr(cross_entropy, "_LEAST_ROWS", 4)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 8)).astype(np.float32)
    weight = rng.standard_normal((classes, 8)).astype(np.float32)
    targets = rng.integers(0, classes, 6)
    targets[[0, 4]] = classes - 1, -100
    loss, of_x, of_weight = exact(x, weight, targets)
    found = cross_entropy.loss_and_gradients(x, weight, targets, -100, (True, True))
    np.testing.assert_allclose(found.loss, [loss], rtol=1e-5)
    np.testing.assert_allclose(found.x, of_x, atol=1e-6)
    np.testing.assert_allclose(found.weight, of_weight, atol=1e-6)
    np.testing.assert_allclose(linear_cross_entropy(x, weight, targets), loss, rtol=1e-5)


def test_rows_that_do_not_count():
    x, weight = np.ones((3, 8), np.float32), np.ones((5, 8), np.float32)
    assert np.isnan(linear_cross_entropy(x, weight, np.full(3, -100)))
    assert np.isnan(linear_cross_entropy(x, weight, np.array([1, 5, 2])))
    assert np.isnan(linear_cross_entropy(x[:0], weight, np.zeros(0, np.int64)))
    targets = np.array([9, 1, 9], np.int32)
    loss = linear_cross_entropy(x, weight, targets, ignore_index=9)
    np.testing.assert_allclose(loss, np.log(5), rtol=1e-6)


def test_what_does_not_fit():
    x, weight, targets = np.ones((3, 8), np.float32), np.ones((5, 8), np.float32), np.zeros(3, int)
    with pytest.raises(DSLTypeError, match="2 targets for 3 rows"):
        linear_cross_entropy(x, weight, targets[:2])
    with pytest.raises(DSLTypeError, match=r"they are \(rows, K\), \(V, K\) and \(rows\)"):
        linear_cross_entropy(x, weight.T, targets)
    with pytest.raises(DSLTypeError, match="targets are of float32"):
        linear_cross_entropy(x, weight, targets.astype(np.float32))
    with pytest.raises(DSLTypeError, match="weight is of float16, and x of float32"):
        linear_cross_entropy(x, weight.astype(np.float16), targets)
