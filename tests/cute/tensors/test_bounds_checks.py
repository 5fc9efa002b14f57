"""Host code checks its coordinates: an IndexError that shows the coordinate and the extent."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError


@cute.jit
def row_start(t: cute.Tensor, i):
    return t[i, 0]


@cute.jit
def linear(t: cute.Tensor, i):
    return t[i]


@cute.jit
def linear_wide(t: cute.Tensor, i: cute.Int64):
    return t[i]


@cute.jit
def linear_unsigned(t: cute.Tensor, i: cute.Uint32):
    return t[i]


@cute.jit
def through_a_slice(t: cute.Tensor, i):
    return t[None, i][1]


@cute.jit
def through_a_tile(t: cute.Tensor, i):
    return cute.local_tile(t, (2, 2), (i, 0))[0, 0]


@cute.jit
def store_where_small(t: cute.Tensor, i):
    if i < 3:
        t[i, 5] = 1.0
    return i


def table():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("function", "inside", "expected"),
    [
        (row_start, 2, 8.0),
        (linear, 11, 11.0),
        (linear_wide, 0, 0.0),
        (linear_unsigned, 11, 11.0),
        (through_a_slice, 3, 7.0),
        (through_a_tile, 0, 0.0),
    ],
)
def test_inside(function, inside, expected):
    assert function(table(), inside) == expected


@pytest.mark.parametrize(
    ("function", "coordinate", "extent"),
    [
        (row_start, 3, 3),
        (row_start, -1, 3),
        (linear, 12, 12),
        (linear, -1, 12),
        (linear_wide, 2**40, 12),
        (linear_unsigned, 4_000_000_000, 12),
        (through_a_slice, 4, 4),
        (through_a_tile, 5, 2),
    ],
)
def test_outside(function, coordinate, extent):
    with pytest.raises(IndexError) as caught:
        function(table(), coordinate)
    assert isinstance(caught.value, DSLError)
    text = str(caught.value)
    assert f"coordinate {coordinate} is out of range for an extent of {extent}" in text
    assert "test_bounds_checks.py" in text and "^" in text


def test_a_known_coordinate_outside_counts_only_where_it_is_reached():
    assert store_where_small(table(), 5) == 5
    with pytest.raises(IndexError, match="coordinate 5 is out of range for an extent of 4"):
        store_where_small(table(), 1)
    assert store_where_small(table(), 7) == 7


def test_nothing_is_stored_outside():
    @cute.jit
    def store(t: cute.Tensor, i):
        t[i] = 9.0

    whole = np.zeros(8, np.float32)
    part = whole[2:5]
    for i in (-1, 3):
        with pytest.raises(IndexError):
            store(part, i)
    assert not whole.any()
    store(part, 2)
    assert whole.tolist() == [0, 0, 0, 0, 9, 0, 0, 0]


def test_coordinate_tensors_have_no_bounds():
    @cute.jit
    def coordinate(i):
        return cute.make_identity_tensor((4, 5))[i, 7]

    assert coordinate(9) == (9, 7)
