"""Loops guess which numbers change in them; a guess that is wrong changes no meaning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import basedsl_toy as toy
from basedsl import DSLTypeError
from basedsl.testing import TraceLog

NOTED = TraceLog()


@pytest.fixture(autouse=True)
def _nothing_noted() -> Iterator[None]:
    NOTED.clear()
    yield


class Ring:
    """A position in a ring of `length` places."""

    __dsl_counters__ = ("index", "rounds")

    def __init__(self, length):
        self.length, self.index, self.rounds = length, 0, 0

    @toy.jit
    def advance(self):
        further = self.index + 1
        wraps = further == self.length
        self.index = 0 if wraps else further
        self.rounds = self.rounds + 1 if wraps else self.rounds


@toy.jit
def turns(n):
    ring = Ring(3)
    for k in range(n):
        NOTED("outer")
        for _ in range(k):
            NOTED("inner")
            ring.advance()
    return ring.index, ring.rounds


def test_counters_of_a_class_are_carried_from_the_first_attempt() -> None:
    assert turns(5) == (10 % 3, 10 // 3)
    assert list(NOTED) == ["outer", "inner"]


@toy.jit
def left_alone(n):
    ring, total = Ring(3), 0
    ring.index = 2
    for _ in range(n):
        NOTED("body")
        total += ring.index
    for _ in toy.range_constexpr(ring.index):
        total += 10
    return total


def test_a_counter_that_stays_is_static_behind_the_loop() -> None:
    assert left_alone(5) == 30
    assert list(NOTED) == ["body", "body"]


@toy.jit
def needed_now(n):
    ring, total = Ring(3), 0
    ring.index = 2
    for _ in range(n):
        for _ in toy.range_constexpr(ring.index):
            total += 1
    return total


def test_a_counter_that_the_body_needs_as_a_static_number_is_not_carried() -> None:
    assert needed_now(5) == 10


@toy.jit
def one_changes(n):
    first, second, fixed = Ring(3), Ring(2), 0
    for _ in range(n):
        first.advance()
        for _ in toy.range_constexpr(second.index + 1):
            fixed += 1
    return first.index, first.rounds, second.index, fixed


def test_a_wrong_guess_beside_a_right_one() -> None:
    assert one_changes(4) == (1, 1, 0, 4)


@toy.jit
def errors(n):
    ring = Ring(3)
    for _ in range(n):
        ring.advance()
        ring.index = "three"
    return ring.index


def test_errors_are_those_of_a_loop_without_guesses() -> None:
    with pytest.raises(DSLTypeError, match=r"'ring\.index' changes in this loop"):
        errors(2)


@toy.jit
def pairs(n):
    pair = (n, n + 1)
    for k in range(n):
        NOTED("body")
        pair = (pair[1], pair[0] + k)
    return pair


@toy.jit
def half_of_a_pair(n):
    pair = (n, n + 1)
    for k in range(n):
        pair = (pair[0], pair[1] + k)
    return pair


def test_dynamic_parts_of_a_variable_that_the_body_binds() -> None:
    assert pairs(3) == (5, 5)
    assert half_of_a_pair(3) == (3, 4 + 0 + 1 + 2)


def test_tuples_are_carried_from_the_first_attempt() -> None:
    pairs.compile(3)
    assert list(NOTED) == ["body"]
