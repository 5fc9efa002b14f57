"""Changes that the code does not depend on compile nothing again."""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any
from uuid import SafeUUID  # any enumeration of a library

import pytest

from basedsl.native_call import object_layout
from basedsl.staleness.guards import Guards

BIG = 10**10
OTHER = 1
PLACE = types.SimpleNamespace(OTHER=7)
TABLE = [1, 2]


def test_an_equal_value_in_another_object(dsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = dsl.jit(lambda x: x + BIG, preprocess=False)
    for i in range(5):
        monkeypatch.setitem(globals(), "BIG", int(f"1{'0' * 10}"))
        assert f(i) == 10**10 + i
    assert dsl.counts["compiled"] == 1


def test_a_global_that_the_function_does_not_name(
    dsl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = dsl.jit(lambda x: x + BIG, preprocess=False)
    for i in range(5):
        monkeypatch.setitem(globals(), "OTHER", i)
        assert f(i) == 10**10 + i
    assert dsl.counts["compiled"] == 1


def test_a_global_with_the_name_of_an_attribute(dsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = dsl.jit(lambda x: x + PLACE.OTHER, preprocess=False)
    for i in range(5):
        monkeypatch.setitem(globals(), "OTHER", i)
        assert f(i) == 7 + i
    assert dsl.counts["compiled"] == 1


def test_an_equal_list_item(dsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = [10**10]
    f = dsl.jit(lambda x: x + table[0], preprocess=False)
    for i in range(5):
        table[0] = int(f"1{'0' * 10}")
        assert f(i) == 10**10 + i
    assert dsl.counts["compiled"] == 1


def test_a_variable_of_the_environment_that_nobody_reads(
    dsl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = dsl.jit(lambda x: x + 1, preprocess=False)
    for i in range(5):
        monkeypatch.setenv("SOME_NUMBER", str(i))
        assert f(i) == i + 1
    assert dsl.counts["compiled"] == 1


def test_a_list_that_tracing_itself_appends_to_gets_an_item_in_each_call(dsl: Any) -> None:
    traces: list[int] = []

    def f(x: Any) -> Any:
        traces.append(1)
        return x + 1

    compiled = dsl.jit(f, preprocess=False)
    assert [compiled(i) for i in range(4)] == [1, 2, 3, 4]
    assert traces == [1, 1, 1, 1]


def test_global_rebound_while_tracing_is_noticed(dsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        y = x + OTHER
        monkeypatch.setitem(globals(), "OTHER", 7)
        return y

    compiled = dsl.jit(f, preprocess=False)
    assert compiled(10) == 11
    assert compiled(10) == 17


@pytest.mark.parametrize(
    "missing", ["dict_version_offset", "type_version_offset", "attributes_version_offset"]
)
def test_the_slower_checks_of_other_interpreters(
    dsl: Any, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_layout, missing, lambda: None)

    class Model:
        step = 1

        def __init__(self) -> None:
            self.table = {"a": 1}

    model = Model()
    f = dsl.jit(lambda x: x + model.step + model.table["a"] + len("a"), preprocess=False)
    assert [f(i) for i in range(4)] == [3, 4, 5, 6]
    model.table["a"] = 2
    assert [f(i) for i in range(4)] == [4, 5, 6, 7]
    monkeypatch.setattr(Model, "step", 5)
    assert [f(i) for i in range(4)] == [8, 9, 10, 11]
    monkeypatch.setenv("BASEDSL_OPT_LEVEL", "1")
    assert f(0) == 8
    assert dsl.counts["compiled"] == 4


class Text(str):
    """A str that can be referred to weakly."""


FIRST, SECOND = Text("a"), 1


def test_a_value_compared_by_address_is_not_freed(
    dsl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "FIRST", Text("a"))
    f = dsl.jit(lambda x: x + len(FIRST) + SECOND, preprocess=False)
    assert [f(i) for i in range(4)] == [2, 3, 4, 5]
    compared = weakref.ref(globals()["FIRST"])
    globals()["FIRST"] = Text("a")
    monkeypatch.setitem(globals(), "SECOND", 5)
    assert f(0) == 6
    gc.collect()
    # The first variant still compares with its address: another value there must not pass.
    assert compared() is not None
    monkeypatch.setitem(globals(), "SECOND", 1)
    assert f(0) == 2
    assert dsl.counts["compiled"] == 2


def test_the_description_is_the_same_for_the_same_things() -> None:
    def make(n: int) -> Any:
        return lambda x: x + n + TABLE[0]

    same = [Guards.collect([make(1)]).portable_text for _ in range(2)]
    assert same[0] is not None
    assert same[0] == same[1]
    assert Guards.collect([make(2)]).portable_text != same[0]


def test_an_object_without_meaning_elsewhere_has_no_description() -> None:
    handle = object()
    assert Guards.collect([lambda x: handle]).portable_text is None


def test_static_arguments_are_described_in_their_order():
    """One that the function has already led to is described too: which argument it is counts."""

    def f(a, b=SafeUUID.safe):
        return a

    pairs = [(a, b) for a in SafeUUID for b in SafeUUID]
    described = {Guards.collect([f], pair).portable_text for pair in pairs}
    assert len(described) == len(pairs)
