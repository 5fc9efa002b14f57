"""Builtins over ranges with dynamic bounds: `reversed`, `enumerate`, `zip`, `sum`, `min`, `max`,
`any`, `all`, `len`.

A `RangeView` is a staged loop's iterable whose items are computed from the number of the iteration.
Ranges with static bounds are left to Python.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from basedsl.errors import DSLTypeError, with_article
from basedsl.metastage.branches import Branch
from basedsl.metastage.chosen_member import ChosenMember
from basedsl.metastage.conditions import truth
from basedsl.metastage.items import select_item
from basedsl.metastage.loops import length_of, stage_for
from basedsl.metastage.quantifiers import quantifier
from basedsl.metastage.ranges import Range
from basedsl.metastage.state import Body
from basedsl.numeric import as_numeric, ask_for_programs, is_dynamic, resolve
from basedsl.tracing import LoopHints, current_trace

ask_for_programs(__file__)


class RangeView(Range):
    """The numbers from 0 to `count`, each of which `item` makes an item of the loop."""

    __slots__ = ("functions", "item")

    def __init__(
        self,
        count: Any,
        item: Callable[[Any], Any],
        hints: LoopHints,
        functions: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(0, count, 1, hints)
        self.item = item
        self.functions = functions


_NO_HINTS = LoopHints(None, False, None, False)


def is_dynamic_range(items: Any) -> bool:
    """Return True for a range, or a view of one, whose length is known at run time only."""
    return isinstance(items, Range) and not items.is_static


def _parts(items: Any, what: str) -> tuple[Any, Callable[[Any], Any]]:
    """Return the length, and the item at a position."""
    if isinstance(items, Range) and items.item is not None:
        return items.stop, items.item
    if isinstance(items, builtins.range):
        items = Range(items.start, items.stop, items.step, _NO_HINTS)
    if isinstance(items, Range):
        start, step = items.start, items.step
        return length_of(items), lambda i: start + i * step
    if isinstance(items, list | tuple):
        return len(items), lambda i: select_item(items, i)
    raise DSLTypeError(
        f"{what} of a range with a dynamic bound and {with_article(type(items))}",
        hint="loop over the range, and index what has a length",
    )


def _hints(items: Any) -> LoopHints:
    return items.hints if isinstance(items, Range) else _NO_HINTS


def reversed_(items: Any) -> Any:
    """`reversed(items)`."""
    if not is_dynamic_range(items):
        return items.__reversed__() if isinstance(items, Range) else builtins.reversed(items)
    if isinstance(items, RangeView):
        return builtins.reversed(iter(()))  # type: ignore[call-overload]  # Python's own error
    count, item = _parts(items, "reversed()")
    return RangeView(count, lambda i: item(count - 1 - i), _hints(items))


def enumerate_(items: Any, start: Any = 0) -> Any:
    """`enumerate(items, start)`."""
    if not is_dynamic_range(items):
        return builtins.enumerate(items, start)
    count, item = _parts(items, "enumerate()")
    return RangeView(count, lambda i: (start + i, item(i)), _hints(items), items.functions)


def zip_(*sources: Any, strict: bool = False) -> Any:
    """`zip(...)`, as long as the shortest; DSLTypeError for `strict` and for iterators."""
    if not any(map(is_dynamic_range, sources)):
        return builtins.zip(*sources, strict=strict)
    if strict:
        raise DSLTypeError(
            "zip(strict=True) of a range with a dynamic bound", hint="compare the lengths before"
        )
    parts = [_parts(source, "zip()") for source in sources]
    count = resolve(builtins.min)([length for length, _ in parts])
    if not is_dynamic(count):
        return builtins.zip(*(map(item, builtins.range(count)) for _, item in parts), strict=False)
    ranges = [source for source in sources if isinstance(source, Range)]
    functions = tuple(function for source in ranges for function in source.functions)
    hints = _hints(next(filter(is_dynamic_range, ranges)))
    return RangeView(count, lambda i: tuple(item(i) for _, item in parts), hints, functions)


def mapped(items: Range, function: Callable[[Any], Any]) -> RangeView:
    """Return the view of `function(x)` for each item `x`."""
    count, item = _parts(items, "a comprehension")
    return RangeView(
        count, lambda i: function(item(i)), _hints(items), (*items.functions, function)
    )


def _fold(items: Range, initial: Any, step: Callable[[Any, Any], Any]) -> Any:
    result = initial

    def body(item: Any) -> None:
        nonlocal result
        result = step(result, item)

    stage_for(current_trace("a staged loop"), items, body, ("result",), ("result",), ())
    return result


def sum_(items: Any, /, start: Any = 0) -> Any:
    """`sum(items, start)`."""
    if not is_dynamic_range(items):
        return builtins.sum(items, start)
    return _fold(items, start, lambda total, item: total + item)


any_ = quantifier(builtins.any, "any", True, _parts)
"""`any(items)`."""
all_ = quantifier(builtins.all, "all", False, _parts)
"""`all(items)`."""


def extreme(original: Any) -> Callable[..., Any]:
    """Return `min` or `max` for traced code."""
    function = resolve(original)

    def better(best: Any, x: Any) -> Any:
        wins = truth(x > best if original is builtins.max else x < best)
        if not is_dynamic(wins):
            return x if wins else best
        sides = (Body(lambda: x, []), Body(lambda: best, []))
        trace = current_trace("a choice at run time")
        return Branch(trace, *sides, (), (), value=True).emit(wins.ir_value())

    def choose(*args: Any, key: Any = None, **kwargs: Any) -> Any:
        if len(args) != 1 or not is_dynamic_range(args[0]):
            given = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
            if key is None and any(type(x) is ChosenMember for x in given):
                return functools.reduce(better, given)
            return function(*args, key=key, **kwargs)
        (items,) = args
        count, item = _parts(items, original.__name__)
        if key is not None:
            items.as_builtin()  # raises
        trace = current_trace("a staged loop")

        def extreme_item() -> Any:
            if not isinstance(items, RangeView):
                return function(item(0), item(count - 1))  # a range goes up, or down
            rest = RangeView(count - 1, lambda i: item(i + 1), _NO_HINTS, items.functions)
            return _fold(rest, item(0), lambda best, x: function(best, x))

        if "default" in kwargs:
            sides = (Body(extreme_item, items.functions), Body(lambda: kwargs["default"], []))
            return Branch(trace, *sides, (), (), value=True).emit((count > 0).ir_value())
        trace.emitter.assert_((count > 0).ir_value(), _message_of(original), trace.loc())
        return extreme_item()

    return choose


def _message_of(original: Any) -> str:
    try:
        original(())
    except ValueError as error:
        return f"ValueError: {error}"
    raise AssertionError(original)


def length(items: Range) -> Any:
    """`len(items)`."""
    return as_numeric(_parts(items, "len()")[0]) if is_dynamic_range(items) else len(items)
