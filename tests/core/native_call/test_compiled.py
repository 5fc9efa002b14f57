"""Compiled functions: arguments other than they were compiled for are errors, and never run."""

from __future__ import annotations

from typing import Any

import pytest

from basedsl import Constexpr, DSLCallError


def add(x: Any, y: Any) -> Any:
    return x + y


@pytest.mark.parametrize("calls", [0, 3], ids=["python", "native"])
def test_another_type_is_an_error_that_names_it(dsl: Any, calls: int) -> None:
    compiled = dsl.compile(dsl.jit(add), 1, 2.0)
    for _ in range(calls):
        assert compiled(1, 2.0) == 3.0
    for wrong, said in ((1.0, "Float64"), (True, "Boolean")):
        with pytest.raises(DSLCallError, match=f"'x' was compiled as Int64, got {said}"):
            compiled(wrong, 2.0)
    with pytest.raises(DSLCallError, match="'y' was compiled as Float64, got Int64"):
        compiled(1, 2)
    assert compiled(1, 2.0) == 3.0


@pytest.mark.parametrize("calls", [0, 3], ids=["python", "native"])
def test_numbers_of_arguments(dsl: Any, calls: int) -> None:
    def f(x: Any, n: Constexpr, y: Any = 4) -> Any:
        return x * n + y

    compiled = dsl.compile(dsl.jit(f), 1, 3)
    for _ in range(calls):
        assert compiled(2) == 10
    assert compiled(2, 5) == 11
    assert compiled(y=5, x=2) == 11
    with pytest.raises(DSLCallError, match=r"takes 2 arguments \(x, y\), got 3"):
        compiled(1, 2, 3)
    with pytest.raises(DSLCallError, match="missing the argument 'x'"):
        compiled()
    with pytest.raises(DSLCallError, match="unexpected argument 'n'"):
        compiled(1, n=3)


def test_python_is_left_after_the_first_call(dsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = dsl.compile(dsl.jit(add), 1, 2)
    assert compiled(1, 2) == 3
    monkeypatch.setattr(compiled, "_invoke", None)
    assert compiled(3, 4) == 7


def test_the_argument_that_keeps_calls_in_python_is_logged(
    dsl: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("basedsl.native_call.unpackers.integer_unpacker", lambda *_: None)
    compiled = dsl.compile(dsl.jit(add), 1, 2)
    with caplog.at_level("DEBUG", logger="basedsl.native_call"):
        assert compiled(1, 2) == 3
    (record,) = caplog.records
    said = "calls stay in Python: 'x', Int64, is of a type without native form"
    assert record.getMessage() == said
