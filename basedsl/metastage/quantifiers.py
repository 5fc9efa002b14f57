"""`any` and `all` of traced code: items after one of run time are computed only if Python would.

Where the items come from `f(x) for x in ...`, each later one is a branch of its own. Other
iterators (`map`, generators, comprehensions with conditions) give their items while compiling;
these later items are computed whatever the earlier ones are, so they must have no effect that a
program sees.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any, NoReturn

from basedsl.errors import DSLError
from basedsl.location import user_frame
from basedsl.metastage.branches import Branch
from basedsl.metastage.conditions import truth
from basedsl.metastage.iterators import is_iterator
from basedsl.metastage.loops import stage_for
from basedsl.metastage.ranges import Range
from basedsl.metastage.state import Body, changed_since, reached_from
from basedsl.numeric import is_dynamic, resolve
from basedsl.tracing import current_trace, current_trace_or_none

Item = Callable[[Any], Any]


def items_made(items: Any, item: Item) -> Iterator[Any]:
    """Yield `item(x)` for each `x`: a generator expression that `quantifier` can take apart."""
    for x in items:
        yield item(x)


def quantifier(original: Any, name: str, wanted: bool, parts: Callable[..., Any]) -> Any:
    """Return `any` (`wanted` is True) or `all` (False) for traced code; `parts(range, name)` gives
    the length of a range of run time, and its item at a position.
    """

    def decide(items: Any) -> Any:
        if isinstance(items, Range) and not items.is_static:
            count, item = parts(items, f"{name}()")
            return _over_range(items, count, item, wanted)
        taken = _taken_apart(items)
        if taken is not None:
            things, item = taken
            return _in_branches(things, item, name, wanted)
        return resolve(original)(items if isinstance(items, Range) else _checked(items, name))

    return decide


def _over_range(items: Range, count: Any, item: Item, wanted: bool) -> Any:
    result: Any = not wanted

    def body(i: Any) -> None:
        nonlocal result
        result = _unless(result, wanted, _truth_of(item, i, items.functions))

    positions = Range(0, count, 1, items.hints)
    trace = current_trace("a staged loop")
    stage_for(trace, positions, body, ("result",), ("result",), ())
    return result


def _in_branches(items: Any, item: Item, name: str, wanted: bool) -> Any:
    result: Any = not wanted
    watched = is_iterator(items)  # it may be a variable's
    later: _LaterItems | None = None
    for x in items:
        if later is not None:
            later.check()
        result = _unless(result, wanted, _truth_of(item, x, (item,)))
        if result is wanted:
            break
        later = _LaterItems(name) if watched and is_dynamic(result) else None
    if later is not None:
        later.check()
    return result


def _truth_of(item: Item, x: Any, functions: tuple[Any, ...]) -> Body:
    return Body(lambda: truth(item(x)), functions)


def _unless(found: Any, wanted: bool, further: Body) -> Any:
    """Return `found or further()`, or `found and further()` if `wanted` is False."""
    if not is_dynamic(found):
        return found if found is wanted else further.run()
    decided = Body(lambda: wanted, [])
    sides = (decided, further) if wanted else (further, decided)
    trace = current_trace("a choice at run time")
    return Branch(trace, *sides, (), (), value=True).emit(found.ir_value())


def _taken_apart(items: Any) -> tuple[Any, Item] | None:
    """Return what `items_made` was given, if it has not begun."""
    if type(items) is not GeneratorType or items.gi_code is not items_made.__code__:
        return None
    if inspect.getgeneratorstate(items) != inspect.GEN_CREATED:
        return None
    frame = items.gi_frame
    assert frame is not None
    held = frame.f_locals
    return held["items"], held["item"]


def _checked(items: Any, name: str) -> Iterator[Any]:
    """Yield the truth of each item; DSLError if one after a dynamic one has an effect."""
    later: _LaterItems | None = None
    for item in items:
        value = truth(item)
        if later is not None:
            later.check()
        elif is_dynamic(value):
            later = _LaterItems(name)
        yield value
    if later is not None:
        later.check()


class _LaterItems:
    """The items after one of run time, which Python may not compute: they must have no effect on
    what the frame of the program leads to, and emit nothing but computations.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._frame = user_frame(sys._getframe(1))
        self._values = {} if self._frame is None else dict(self._frame.f_locals)
        self._before = reached_from(self._values)
        trace = current_trace_or_none()
        block = None if trace is None else trace.ir.InsertionPoint.current.block
        self._block, self._emitted = block, 0 if block is None else len(block.operations)

    def check(self) -> None:
        """Raise a DSLError if one of them had an effect."""
        now = {} if self._frame is None else self._frame.f_locals
        path = next((k for k, v in self._values.items() if now.get(k) is not v), None)
        if path is None:
            path = changed_since(self._before)
        if path is not None:
            self._refuse(f"'{path}' is changed by")
        if self._block is not None:
            emitted = list(self._block.operations)[self._emitted :]
            if any(map(_has_effect, emitted)):
                self._refuse("something is stored or called by")

    def _refuse(self, what: str) -> NoReturn:
        raise DSLError(
            f"{what} a later item of {self._name}()",
            notes=(("Python stops at the first item that decides", None),),
            hint=f"write `{self._name}(f(x) for x in ...)`, or a loop",
        )


_COMPUTATIONS = ("arith.", "math.", "index.", "ub.", "scf.", "cf.", "complex.")
_READS = frozenset({"load", "getelementptr", "extractvalue", "view", "recast", "iterator"})


def _has_effect(op: Any) -> bool:
    name = op.operation.name
    known = name.startswith(_COMPUTATIONS) or name.rpartition(".")[2] in _READS
    return not known or any(
        _has_effect(inner)
        for region in op.operation.regions
        for block in region.blocks
        for inner in block.operations
    )
