"""Calls that are repeated at other addresses: `DSL.repeated`."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_toy as toy
from basedsl import DSLCallError

TABLE = np.arange(3.0)


@toy.jit
def combine(out: toy.Buffer, pair, n: int, scale: float):
    out[0] = pair[0][1] * n + pair[1][2] * scale
    return n


@toy.jit
def captured(out: toy.Buffer):
    out[0] = float(TABLE[1])


def arrays(base=0.0):
    return np.zeros(4), np.arange(4.0) + base, np.arange(4.0) * 2 + base


def address(x):
    return x.__array_interface__["data"][0]


def test_arrays_and_named_numbers_are_others_and_all_else_is_the_same():
    out, a, b = arrays()
    assert combine(out, (a, b), 3, 0.5) == 3
    again = toy.TOY.repeated(combine, out, (a, b), 3, 0.5, numbers=("n",))
    others = arrays(10.0)
    assert again((*map(address, others), 5)) == 5
    assert others[0][0] == 11 * 5 + 14 * 0.5
    assert out[0] == 1 * 3 + 4 * 0.5
    fixed = toy.TOY.repeated(combine, out, (a, b), 3, 0.5)
    assert fixed(tuple(map(address, others))) == 3 and others[0][0] == 11 * 3 + 14 * 0.5


@pytest.mark.parametrize(
    "given", [(), (7,), ((1, 2),), ((1, 2, 3, 4),), ((1, 2, 3.0),), ((1, 2, -1),), ((1, 2, 2**64),)]
)
def test_other_tuples_are_refused(given):
    out, a, b = arrays()
    combine(out, (a, b), 3, 0.5)
    again = toy.TOY.repeated(combine, out, (a, b), 3, 0.5)
    with pytest.raises(DSLCallError, match="takes a tuple of 3 addresses"):
        again(*given)


def test_code_that_knows_an_array_is_not_repeated():
    out = np.zeros(4)
    captured(out)
    assert out[0] == 1 and toy.TOY.repeated(captured, out) is None


def test_a_type_that_does_not_say_where_its_addresses_are_is_not_repeated(monkeypatch):
    out, a, b = arrays()
    combine(out, (a, b), 3, 0.5)
    monkeypatch.setattr(toy.buffer.BufferArgument, "address_places", None)
    assert toy.TOY.repeated(combine, out, (a, b), 3, 0.5) is None
