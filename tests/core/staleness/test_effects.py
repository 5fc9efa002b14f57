"""Changes that tracing makes outside of the function are made in each call, or are an error."""

from __future__ import annotations

import time
from typing import Any

import pytest

from basedsl import DSLError


def test_code_with_an_effect_is_for_one_call_and_without_is_kept(dsl: Any) -> None:
    state = [0]

    @dsl.jit
    def f(n: Any) -> Any:
        state[0] = 5
        return n + state[0]

    assert [f(1), f(1), f(1)] == [6, 6, 6]
    assert dsl.counts["compiled"] == 2  # from the second call on nothing changes
    state[0] = 0
    assert f(1) == 6 and state == [5]
    assert dsl.counts["compiled"] == 3


def test_an_exception_after_an_effect_is_not_taken_for_pythons(dsl: Any) -> None:
    log: list[int] = []

    @dsl.jit
    def f(n: Any) -> Any:
        log.append(1)
        return 10 // n

    assert f(5) == 2 and log == [1]
    with pytest.raises(DSLError, match="changes 'log' while compiling, then raises ZeroDiv"):
        f(0)


def test_an_attribute_set_to_an_equal_constant_is_no_effect(dsl: Any) -> None:
    class Tile:
        def __init__(self) -> None:
            self.shape: Any = None

        @dsl.jit
        def area(self, n: Any) -> Any:
            self.shape = (4, 8)
            return n * self.shape[0]

    tile = Tile()
    assert [tile.area(n) for n in (1, 2, 3)] == [4, 8, 12]
    assert dsl.counts["compiled"] == 2
    fresh = dsl.compile(Tile().area, 1)
    assert fresh(2) == 8


def test_what_a_dynamic_value_was_left_in_is_put_back(dsl: Any) -> None:
    class Account:
        value = 1

    account = Account()
    account.value = 1
    names = {"a": 1}

    @dsl.jit
    def f(n: Any) -> Any:
        names["b"] = 2
        account.value += n
        return n

    for _ in range(2):
        with pytest.raises(DSLError, match=r"'account\.value' outlives the call"):
            f(3)
        assert account.value == 1 and names == {"a": 1}


def test_a_clock_is_read_in_each_call(dsl: Any) -> None:
    @dsl.jit
    def f(n: Any) -> Any:
        return n + time.perf_counter_ns() % 10**9

    assert len({f(0) for _ in range(3)}) == 3
