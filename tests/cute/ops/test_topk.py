"""The top k of `ops` against NumPy, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLCallError, DSLTypeError
from basedsl_cute.ops import topk
from basedsl_cute.ops.layer import rows


def wanted(x, k, largest=True):
    """The indices by a stable sort, in which the first of equal elements comes first."""
    keys = np.where(np.isnan(x), np.inf, x).astype(np.float64)
    order = np.lexsort((np.arange(x.shape[-1]),), axis=-1)
    found = [
        sorted(order, key=lambda i, row=row, nan=nan: ((nan[i], row[i]) if not largest else
                                                       (not nan[i], -row[i])))[:k]
        for row, nan in zip(keys, np.isnan(x), strict=True)
    ]  # fmt: skip
    return np.array(found)


def compare(x, k, largest=True):
    values, indices = topk(x, k, largest=largest)
    right = wanted(x, k, largest)
    np.testing.assert_array_equal(indices, right)
    np.testing.assert_array_equal(values, np.take_along_axis(x, right, -1))
    assert values.dtype == x.dtype and indices.dtype == np.int64


# Several rows of a block, no whole vector, several warps.
@pytest.mark.filterwarnings("ignore::basedsl_cute.dsl.steps.SpillWarning")  # ptxas before 13.3
@pytest.mark.parametrize(("shape", "k"), [((6, 40), 7), ((5, 7), 7), ((2, 1032), 33)])
def test_largest(shape, k):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[0] = x[0].round()  # so that many are equal to the k-th
    compare(x, k)


def test_a_row_of_a_cluster_of_blocks(monkeypatch):
    monkeypatch.setattr(rows, "_ALONE", 64)
    monkeypatch.setattr(rows, "_SHARE", 64)
    x = np.random.default_rng(0).integers(-9, 9, (2, 227)).astype(np.float32)
    x[1] = x[1] > 0
    compare(x, 20)


def test_narrow_elements_and_the_smallest():
    x = np.random.default_rng(0).standard_normal((3, 300)).astype(np.float16)
    compare(x, 5)
    compare(x, 5, largest=False)


def test_equal_elements():
    x = np.random.default_rng(0).integers(-2, 3, (4, 70)).astype(np.float32)
    x[0], x[1, ::2] = 0, -0.0
    compare(x, 20)
    compare(x, 20, largest=False)


def test_elements_that_are_not_finite():
    x = np.random.default_rng(0).standard_normal((4, 37)).astype(np.float32)
    x[0, [3, 9]], x[0, 5], x[1] = np.nan, np.inf, -np.inf
    x[2, 4], x[3] = -np.nan, np.nan
    compare(x, 4)
    compare(x, 4, largest=False)


def test_what_does_not_fit():
    x = np.ones((2, 8), np.float32)
    with pytest.raises(DSLCallError, match="k is 9"):
        topk(x, 9)
    with pytest.raises(DSLCallError, match="k is 0"):
        topk(x, 0)
    with pytest.raises(DSLTypeError, match="topk: x is of Int32"):
        topk(x.astype(np.int32), 2)
    with pytest.raises(DSLTypeError, match=r"k is 2\.0"):
        topk(x, 2.0)
    assert topk(x, np.int64(2)).values.shape == (2, 2)
