"""Affine values: the same numbers as arrays of lanes give, whatever is done with them."""

import operator

import numpy as np
import pytest

from basedsl_cute.sim import affine
from basedsl_cute.sim import numerics as num
from basedsl_cute.sim.affine import Affine, LaneGrid, dense
from basedsl_cute.sim.machine.lanes import Lanes

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


def test_lanes_that_meet():
    one = VALUES[0]
    assert one.is_injective((32 * 4, 0, 8 * 4, 4), 4)
    assert not one.is_injective((32 * 4, 0, 8 * 4, 4), 8)  # of 8 bytes each, neighbours meet
    assert not one.is_injective((128, 0, 0, 4), 4)  # the threads of a column meet
    assert not one.is_injective((0, 0, 32, 4), 4)  # blocks meet
    assert one.is_injective((-128, 0, 32, 4), 4)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 8, 16, 31, 32, 63])
def test_quotients_and_bits_are_those_of_arrays(number):
    number = np.int32(number)
    for one in (*VALUES, value(3, 64, 0, 8, 1), value(32, 64, 0, -8, 1)):
        for operation in (operator.and_, operator.rshift, operator.lshift):
            got, expected = dense(operation(one, number)), operation(one.dense, number)
            assert got.dtype == expected.dtype and np.array_equal(got, expected)
        assert np.array_equal(dense(number & one), number & one.dense)
        assert np.array_equal(dense(number << one), number << one.dense)
        found = one.divided(int(number))
        if found is not None:
            assert np.array_equal(found[0].dense, one.dense // number)
            assert np.array_equal(found[1].dense, one.dense % number)


def test_parts_of_warps_are_coefficients():
    x = Lanes((256, 1, 1), 0, 256, (3, 1, 1), 32).affine("thread", 0, 0)
    for number in (4, 32):
        quotient, remainder = x.divided(number)
        assert np.array_equal(quotient.dense, np.tile(np.arange(256) // number, 3))
        assert np.array_equal(remainder.dense, np.tile(np.arange(256) % number, 3))


@pytest.mark.parametrize("block", [(64, 1, 1), (16, 4, 2), (6, 5, 1), (1, 1, 1), (8, 1, 3)])
@pytest.mark.parametrize("box", [(1, 1, 1), (3, 1, 1), (2, 3, 1), (2, 2, 2)])
def test_coordinates_are_those_of_lanes(block, box):
    threads = block[0] * block[1] * block[2]
    lanes = Lanes(block, 0, threads, box, 32)
    for at in range(3):
        assert np.array_equal(lanes.affine("thread", at, 0).dense, lanes.tid[at])
        places = (lanes.block_places[at] + 5)[lanes.block_number]
        assert np.array_equal(lanes.affine("block", at, 5).dense, places)
    assert np.array_equal(lanes.affine_linear.dense, lanes.linear)
    assert np.array_equal(lanes.grid.sum_of(lanes.block_parts, I64), lanes.block_number)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("number", [-100, -1, 0, 5, 40, 100, 101, (1 << 31) - 1])
def test_unsigned_comparisons_are_those_of_arrays(compare, number):
    number = np.int32(number)
    for one in VALUES:
        for a, b in ((one, number), (number, one), (one, VALUES[1])):
            expected = compare(num.unsigned(dense(a)), num.unsigned(dense(b)))
            assert np.array_equal(compare(*affine.as_unsigned(a, b)), expected)


@pytest.mark.parametrize("number", [0, 1, 3, 31, 32, 33])
def test_unsigned_shifts_and_quotients_are_those_of_arrays(number):
    number = np.int32(number)
    for one in VALUES:
        shifted = num.signed(num.unsigned(one.dense) >> num.unsigned(number))
        assert np.array_equal(dense(affine.shift_right(one, number)), shifted)
        wide = num.unsigned(one.dense).astype(np.int64)
        assert np.array_equal(dense(affine.zero_extended(one, np.int64)), wide)
        for remainder, operation in ((False, operator.floordiv), (True, operator.mod)):
            found = affine.held_quotient(one, number, remainder)
            assert found is None or np.array_equal(found.dense, operation(one.dense, number))
