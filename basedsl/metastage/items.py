"""`items[i]` of a list or tuple, where `i` is known at run time only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from basedsl.metastage.branches import Branch
from basedsl.metastage.state import Body
from basedsl.tracing import current_trace


def check_index(items: Any, index: Any) -> None:
    """Emit the check that `index` is in the range of a list or tuple."""
    length, kind = len(items), type(items).__name__
    if length == 0:
        raise IndexError(f"{kind} index out of range")
    trace = current_trace("an index known at run time only")
    inside = (index >= -length) & (index < length)
    trace.emitter.assert_(inside.ir_value(), f"IndexError: {kind} index out of range", trace.loc())


def select_item(items: Any, index: Any) -> Any:
    """Return `items[index]`: a tree of branches, as deep as the logarithm of the length."""
    check_index(items, index)
    length = len(items)
    if length == 1:
        return items[0]

    def holder() -> Any:  # so that the branches see the items as objects from before
        return items

    wide = index + 0
    position = _choose(wide < 0, lambda: wide + length, lambda: wide, holder)
    return _pick(lambda i: items[i], 0, length - 1, position, holder)


def pick(thunks: Sequence[Callable[[], Any]], place: Any) -> Any:
    """Return what the function at `place` in `thunks` returns, which is called in a branch."""

    def holder() -> Any:
        return thunks

    return _pick(lambda i: thunks[i](), 0, len(thunks) - 1, place, holder)


def _choose(
    test: Any, one: Callable[[], Any], other: Callable[[], Any], holder: Callable[[], Any]
) -> Any:
    if not hasattr(test, "ir_value"):
        return one() if test else other()
    trace = current_trace("an index known at run time only")
    sides = (Body(one, [holder]), Body(other, [holder]))
    return Branch(trace, *sides, (), (), value=True).emit(test.ir_value())


def _pick(
    get: Callable[[int], Any], first: int, last: int, position: Any, holder: Callable[[], Any]
) -> Any:
    if first == last:
        return get(first)
    middle = (first + last) // 2
    return _choose(
        position <= middle,
        lambda: _pick(get, first, middle, position, holder),
        lambda: _pick(get, middle + 1, last, position, holder),
        holder,
    )
