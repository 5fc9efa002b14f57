"""Readers of single values that guards record: fields of functions, cells, slots, names."""

from __future__ import annotations

import types
from typing import Any

from basedsl.staleness.guard_kinds import MISSING

#: What functions and classes say of themselves.
TEXTS = ("__annotations__", "__doc__", "__module__", "__name__", "__qualname__")


def texts_of(value: Any) -> tuple[Any, ...]:
    """Return the names, documentation and annotations of a function or class."""
    return tuple(
        tuple(found.items()) if type(found) is dict else found
        for found in (getattr(value, name, None) for name in TEXTS)
    )


def given_attributes(fn: Any) -> tuple[tuple[str, Any], ...]:
    """Return the attributes that a program gave a function."""
    own = getattr(fn, "__dsl_own__", ("__wrapped__",))
    return tuple((name, value) for name, value in vars(fn).items() if name not in own)


def cell_content(cell: types.CellType) -> Any:
    """Return the content of a cell; MISSING for none."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def slot_content(slot: Any, obj: Any) -> Any:
    """Return the value of a slot of an object; MISSING for none, and in an object that has got
    another class.
    """
    try:
        return slot.__get__(obj)
    except (AttributeError, TypeError):
        return MISSING
