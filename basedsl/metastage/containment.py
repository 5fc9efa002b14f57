"""`x in container` where the item, or what it is compared with, is known at run time only.

Python compares the item with the container's items one by one: here that becomes equalities joined
by `or`. A dict or a set is searched in the same way, for its keys are static.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, KeysView, ValuesView
from types import FunctionType
from typing import Any

from basedsl.errors import DSLTypeError, with_article
from basedsl.metastage.chosen_member import ChosenMember
from basedsl.metastage.ranges import Range
from basedsl.numeric import Numeric, ambiguous, is_ambiguous, is_dynamic

_BUILT_IN: tuple[Any, ...] = (tuple, list, deque, dict, set, frozenset)
_SEARCHED = (*_BUILT_IN, KeysView, ValuesView)
_HASHED = (dict, set, frozenset, KeysView)

_NUMBERS = (int, float, Numeric)


def contains(item: Any, container: Any) -> Any:
    """Return the condition of `item in container`: a bool, or a dynamic Boolean."""
    if isinstance(container, range | Range):
        return _in_range(item, container)
    if isinstance(container, _SEARCHED) and not _has_its_own_search(container):
        keys = _searched(container)
        if isinstance(item, type):
            for key in keys:
                if isinstance(key, type) and is_ambiguous(key, item):
                    raise ambiguous(key, item)
        if any(is_dynamic(x) or type(x) is ChosenMember for x in (item, *keys)):
            if isinstance(container, _HASHED):
                _check_hashes(keys)
            return _is_one_of(item, keys)
    method = getattr(type(container), "__contains__", None)
    return method(container, item) if isinstance(method, FunctionType) else item in container


def _has_its_own_search(container: Any) -> bool:
    """Return True for a program's subclass of a container of Python with another `__contains__`."""
    return isinstance(container, _BUILT_IN) and isinstance(
        type(container).__contains__, FunctionType
    )


def _searched(container: Any) -> list[Any]:
    """Return the items that Python compares: what is stored, not what an `__iter__` of a program's
    subclass gives.
    """
    base = next((kind for kind in _BUILT_IN if isinstance(container, kind)), None)
    return list(container) if base is None else list(base.__iter__(container))


def _check_hashes(keys: Iterable[Any]) -> None:
    """Raise DSLTypeError for a key that is a number of a program's own class with another equality
    or hash: Python compares only what has the same hash, and a dynamic number has none.
    """
    for key in keys:
        own = {type(getattr(type(key), name)) for name in ("__eq__", "__hash__")}
        if isinstance(key, int | float) and FunctionType in own:
            raise DSLTypeError(
                f"a dynamic number is looked up among keys of class {type(key).__name__}",
                hint="these have their own equality or hash: compare them one by one, as "
                "any(n == key for key in keys)",
            )


def _is_one_of(item: Any, keys: Iterable[Any]) -> Any:
    found: Any = False
    for key in keys:
        if key is item:
            return True
        members = type(key) is ChosenMember or type(item) is ChosenMember
        if not members and not (isinstance(key, _NUMBERS) and isinstance(item, _NUMBERS)):
            if key == item:
                return True
            continue
        same = key == item
        if not is_dynamic(same):
            if same:
                return True
        else:
            found = same if found is False else found | same
    return found


def _in_range(item: Any, bounds: Any) -> Any:
    if not is_dynamic(item) and (isinstance(bounds, range) or bounds.is_static):
        return item in (bounds if isinstance(bounds, range) else bounds.as_builtin())
    start, stop, step = bounds.start, bounds.stop, bounds.step
    if is_dynamic(step):
        raise DSLTypeError(
            "a range with a dynamic step is searched", hint="compare with its bounds and its step"
        )
    if not isinstance(item, Numeric | int) or (isinstance(item, Numeric) and item.is_float):
        raise DSLTypeError(
            f"a range of integers is searched for {with_article(type(item))}",
            hint="compare with its bounds: start <= x < stop",
        )
    step = int(step)
    inside = (item >= start) & (item < stop) if step > 0 else (item <= start) & (item > stop)
    return inside if abs(step) == 1 else inside & (item % abs(step) == start % abs(step))
