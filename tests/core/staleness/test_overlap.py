"""Objects that are an argument and known to the code otherwise; results that were there before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import basedsl_toy as toy
from basedsl import DSLError

TABLE = np.array([1, 2, 3])


class Box:
    def __init__(self) -> None:
        self.values = np.array([1, 2, 3])
        self.n = 3


BOX = Box()
LIST = [1, 2]


def through_a_global(a: Any) -> Any:
    a[0] = a[0] + 1
    return TABLE[0]


def through_an_attribute(a: Any) -> Any:
    a[1] = 50
    return BOX.values[1]


@pytest.mark.parametrize("way", ["the array", "a view", "a copy"])
@pytest.mark.parametrize("name", ["global", "attribute"])
def test_a_store_into_an_array_that_is_captured_too_is_an_error(name: str, way: str) -> None:
    fn, array = {
        "global": (through_a_global, TABLE),
        "attribute": (through_an_attribute, BOX.values),
    }[name]
    array[:] = [1, 2, 3]
    compiled = toy.jit(fn)
    given = {"the array": array, "a view": array[:2], "a copy": array.copy()}[way]
    for _ in range(3):  # a later call of the same code is no other
        if way == "a copy":
            assert compiled(given) == array[0 if name == "global" else 1]
            continue
        array[:] = [1, 2, 3]
        with pytest.raises(DSLError, match="is an argument, too, and the call has changed it"):
            compiled(given)


def test_a_captured_array_may_be_an_argument_that_is_only_read() -> None:
    @toy.jit
    def total(a: Any) -> Any:
        return a[0] + int(TABLE[1])

    TABLE[:] = [1, 2, 3]
    assert [total(TABLE), total(TABLE)] == [3, 3]


def test_an_object_that_static_code_changes_cannot_be_an_argument() -> None:
    @toy.jit
    def f(items: Any) -> Any:
        LIST.append(3)
        return len(items)

    LIST[:] = [1, 2]
    assert f([1, 2]) == 2
    with pytest.raises(DSLError, match="'LIST' is an argument, too, and is changed"):
        f(LIST)


def test_what_was_there_before_comes_back_as_itself() -> None:
    own = {"a": 1}

    @toy.jit
    def f(n: Any, pair: Any) -> Any:
        return LIST, (BOX, n), own, pair, [pair[1]], [1, 2]

    pair = ([4], {"x": 5})
    for n in (1, 2, 3):
        r = f(n, pair)
        assert r[0] is LIST and r[1] == (BOX, n) and r[1][0] is BOX and r[2] is own
        assert r[3] is pair and r[4][0] is pair[1]
    assert r[5] == [1, 2] and f(3, pair)[5] is not r[5]
    compiled = f.compile(1, pair)
    for _ in range(3):
        assert compiled(1, pair)[3] is pair


def test_native_calls_take_arrays_apart_from_the_captured_ones():
    whole = np.arange(20.0)
    inner = whole[3:8]

    @toy.jit
    def f(a: toy.Buffer):
        a[0] = 7.0
        return float(inner[0]) + a[0]

    apart = np.zeros(4)
    for _ in range(3):
        assert f(apart) == 10.0
    assert type(f.__call__).__name__ == "builtin_function_or_method"
    assert [f(whole[8:]), f(whole[:3]), f(whole[18:8:-1]), f(whole[19:8:-5])] == [10.0] * 4
    for overlapping in (whole[3:], whole[3::-1], whole[3:4]):
        whole[3] = 3.0
        with pytest.raises(DSLError, match="'inner' is an argument, too"):
            f(overlapping)
    whole[3] = 3.0
    assert f(apart) == 10.0
