"""Affine values: the same numbers as arrays of lanes give, whatever is done with them."""

import operator

import numpy as np
import pytest

from basedsl_cute.sim import numerics as num
from basedsl_cute.sim.affine import Affine, LaneGrid, dense

GRID = LaneGrid((3, 1, 4, 8))
I32, I64 = np.dtype(np.int32), np.dtype(np.int64)


def value(base, *parts, dtype=I32):
    return Affine(GRID, base, parts, dtype)


VALUES = [value(0, 0, 0, 0, 1), value(5, 32, 0, 8, 1), value(-7, 0, 0, -3, 2), value(9, 0, 0, 0, 0)]


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
@pytest.mark.parametrize("other", [np.int32(256), np.int32(-3), *VALUES], ids=range(6))
def test_arithmetic_is_that_of_arrays(operation, other):
    for one in VALUES:
        for a, b in ((one, other), (other, one)):
            got, expected = dense(operation(a, b)), operation(dense(a), dense(b))
            assert got.dtype == expected.dtype and np.array_equal(got, expected)


def test_what_wraps_is_an_array():
    near = value((1 << 31) - 20, 0, 0, 0, 1)
    assert isinstance(near + np.int32(12), Affine)
    assert np.array_equal(near + np.int32(15), near.dense + np.int32(15))
    wide = VALUES[1].astype(np.int64) * 4 + np.int64(1 << 40)
    assert isinstance(wide, Affine) and wide.dense.dtype == I64
    assert np.array_equal(wide.dense, VALUES[1].dense.astype(np.int64) * 4 + (1 << 40))


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("number", [-100, 0, 5, 40, 100, 101, 500])
def test_comparisons_are_those_of_arrays(compare, number):
    for one in VALUES:
        assert np.array_equal(compare(one, np.int32(number)), compare(one.dense, number))
        assert np.array_equal(compare(np.int32(number), one), compare(number, one.dense))


def test_runs_and_lanes_that_meet():
    run = value(64, 32 * 4, 0, 8 * 4, 4)
    assert run.is_run(4) and not run.is_run(8)
    assert value(0, 128, 0, 0, 4).strides(0) is None  # the threads of a column meet
    assert value(0, 0, 0, 32, 4).strides(0) is None  # blocks meet, unless each has its own memory
    assert value(0, 0, 0, 32, 4).strides(1024) == (1024, 0, 32, 4)
    assert value(0, -128, 0, 32, 4).strides(0) == (-128, 0, 32, 4)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("number", [-100, -1, 0, 5, 40, 100, 101, (1 << 31) - 1])
def test_unsigned_comparisons_are_those_of_arrays(compare, number):
    number = np.int32(number)
    for one in VALUES:
        for a, b in ((one, number), (number, one), (one, VALUES[1])):
            expected = compare(num.unsigned(dense(a)), num.unsigned(dense(b)))
            assert np.array_equal(compare(*num.as_unsigned(a, b)), expected)
