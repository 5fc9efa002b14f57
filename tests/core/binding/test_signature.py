"""Binding calls: one value a parameter, and what native calls are told of parameters."""

from __future__ import annotations

from typing import Any

import pytest

from basedsl import DSLCallError
from basedsl.binding import NumericArgument, Signature, StaticArgument, TreeArgument, static_parts
from basedsl.binding.arguments import from_storage, storage_format, storage_value
from basedsl.binding.signature import NO_DEFAULT, Parameters
from basedsl.numeric import Boolean, Float16, Int4, Int64, Int128, Uint4
from basedsl.pytree import flatten


def plain(a: Any, /, b: Any = 2, *, c: Any, d: Any = 4) -> None:
    """A function with every kind of plain parameter."""


def variadic(a: Any, *rest: Any, **named: Any) -> None:
    """A function with variadic parameters."""


def test_one_value_for_each_parameter() -> None:
    assert Signature(plain).bind((1,), {"c": 3}) == [1, 2, 3, 4]
    assert Signature(variadic).bind((1, 2, 3), {"x": 4}) == [1, (2, 3), {"x": 4}]
    assert Signature(plain).spread([1, 2, 3, 4]) == ([1, 2], {"c": 3, "d": 4})


@pytest.mark.parametrize("call", [((), {}), ((1, 2, 3), {"c": 1}), ((1,), {"a": 1, "c": 1})])
def test_calls_that_do_not_fit(call: Any) -> None:
    with pytest.raises(DSLCallError, match=r"plain\(\): "):
        Signature(plain).bind(*call)


def test_what_native_calls_are_told() -> None:
    assert Signature(plain).native() == Parameters(
        (None, "b", "c", "d"), (NO_DEFAULT, 2, NO_DEFAULT, 4), 2
    )
    assert Signature(plain).native([1, 3]) == Parameters(("b", "d"), (2, 4), 1)
    assert Signature(variadic).native() is None


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Int4, [-8, -1, 0, 7]),
        (Uint4, [0, 15]),
        (Boolean, [True, False]),
        (Int128, [-(2**127), 2**127 - 1]),
        (Float16, [0.5, -2.0]),
    ],
)
def test_storage_goes_both_ways(kind: Any, values: list[Any]) -> None:
    for value in values:
        raw = storage_value(kind, value)
        if kind is Int4:
            raw &= 15  # as compiled code stores it: zeros above
        assert from_storage(kind, raw) == value
        assert storage_format(kind)


def test_what_is_static_in_arguments() -> None:
    node, _ = flatten((1, {"a": 2}))
    assert node is not None
    tree = TreeArgument(node, [NumericArgument(Int64), StaticArgument("k", "value")])
    assert static_parts(tree) == [tuple, dict, "value"]
    assert static_parts(NumericArgument(Int64)) == []
