"""Poison: marks of values that come from what nobody wrote, and the report where they matter.

A value has poison None, or the lanes and elements whose bits nobody wrote. It follows the data: an
operation on a poisoned operand gives a poisoned result. It is reported where it decides an address
or a branch, where it is stored to global memory, and where an operation that is not elementwise
takes it; a value that is discarded is not reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import ArithmeticTrapError, Note, Thread, UninitializedReadError
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site

_DIVIDE = "divide only where the divisor is not zero: if n != 0"

STORED = 1
"""The mark, in a segment's shadow, of a byte in which a poisoned value was stored."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The read that found what nobody wrote, or the division by zero. `check` has the level of its
    report.
    """

    message: str
    site: Site
    where: Thread | None
    hint: str | None
    notes: tuple[Note, ...] = ()
    check: str = "uninitialized"


@dataclass(frozen=True, slots=True, eq=False)
class Poison:
    """The poisoned part of a value: booleans that broadcast with it, or a tuple of such."""

    mask: Any
    origin: Origin


def undefined(site: Site) -> Poison:
    """The poison of a value that the compiler knows nobody has set."""
    text = "read of registers that nobody has written"
    return Poison(np.True_, Origin(text, site, None, "set the variable or fill the tensor first"))


def by_zero(g: Group, zero: Any, m: Mask, message: str, site: Site) -> Poison | None:
    """The poison of the quotients of the lanes whose divisor is zero."""
    mask = zero if m is None else zero & m
    lane = _first(g, mask, None)
    if lane is None:
        return None
    return Poison(mask, Origin(message, site, g.thread(lane), _DIVIDE, check="division"))


# Poison that follows the data ---------------------------------------------------------------------


def full(poison: Poison | None, shape: Any) -> Any:
    """The mask of a value of `shape`, or of a tuple of shapes; all False for no poison."""
    mask = np.False_ if poison is None else poison.mask
    return _full(mask, shape)


def _full(mask: Any, shape: Any) -> Any:
    if isinstance(shape, list):
        masks = mask if isinstance(mask, tuple) else (mask,) * len(shape)
        return tuple(_full(one, part) for one, part in zip(masks, shape, strict=True))
    return np.broadcast_to(mask, shape)[()]


def moved(mask: Any, *sources: Poison | None) -> Poison | None:
    """The poison with `mask`, which was moved as the data of `sources`; None if it is clean."""
    if not _some(mask):
        return None
    return Poison(mask, next(one.origin for one in sources if one is not None))


def _some(mask: Any) -> bool:
    return any(map(_some, mask)) if isinstance(mask, tuple) else bool(np.any(mask))


def _either(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) or isinstance(b, tuple):
        count = len(a) if isinstance(a, tuple) else len(b)
        a, b = (x if isinstance(x, tuple) else (x,) * count for x in (a, b))
        return tuple(_either(x, y) for x, y in zip(a, b, strict=True))
    return a | b


def join(*parts: Poison | None) -> Poison | None:
    """The poison of an elementwise result."""
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else Poison(_either(found.mask, part.mask), found.origin)
    return found


def _where(chosen: Any, new: Any, old: Any) -> Any:
    if isinstance(new, tuple) or isinstance(old, tuple):
        count = len(new) if isinstance(new, tuple) else len(old)
        new, old = (x if isinstance(x, tuple) else (x,) * count for x in (new, old))
        return tuple(_where(chosen, x, y) for x, y in zip(new, old, strict=True))
    return np.where(chosen, new, old)


def choose(chosen: Any, new: Poison | None, old: Poison | None) -> Poison | None:
    """The poison of `new` where `chosen` holds, and that of `old` elsewhere."""
    if new is None and old is None:
        return None
    masks = [np.False_ if one is None else one.mask for one in (new, old)]
    return moved(_where(chosen, *masks), new, old)


def keep(m: Any, new: Poison | None, old: Poison | None) -> Poison | None:
    """The poison of `new` in the lanes of `m`, and that of `old` elsewhere."""
    return new if m is None else choose(m, new, old)


def select(
    c: Any, condition: Poison | None, yes: Poison | None, no: Poison | None
) -> Poison | None:
    """The poison of a choice: that of the value chosen, and all of it by a poisoned condition."""
    return join(choose(c, yes, no), condition)


def bitcast(poison: Poison, old_count: int, new_count: int) -> Poison:
    """The poison of the same bits as `new_count` elements instead of `old_count`; 0: a scalar."""
    mask = poison.mask
    if old_count == new_count or isinstance(mask, tuple):
        return poison
    rows: Any = np.atleast_2d(mask)
    rows = np.broadcast_to(rows, (max(old_count, 1), rows.shape[-1]))
    count = max(new_count, 1)
    if count > len(rows):
        rows = np.repeat(rows, -(-count // len(rows)), axis=0)[:count]
    else:
        rows = rows.reshape(count, -1, rows.shape[-1]).any(axis=1)
    out = rows if new_count else rows[0]
    return Poison(out if out.shape[-1] > 1 or new_count else out[0], poison.origin)


def folded(poison: Poison | None) -> Poison | None:
    """The poison of a reduction of all elements of a vector."""
    if poison is None or np.ndim(poison.mask) < 2:
        return poison
    mask = poison.mask.any(axis=tuple(range(poison.mask.ndim - 1)))
    return moved(mask if mask.size > 1 else mask[0], poison)


def crossed(g: Group, m: Mask, *parts: Poison | None) -> Poison | None:
    """The poison of a result that each warp makes of the values of all its lanes."""
    found = join(*parts)
    if found is None:
        return None
    mask = found.mask
    masks = mask if isinstance(mask, tuple) else (mask,)
    lanes = np.zeros(g.lanes, np.bool_)
    for one in masks:
        wide = np.broadcast_to(one, np.broadcast_shapes(np.shape(one), (g.lanes,)))
        lanes |= wide.reshape(-1, g.lanes).any(axis=0)
    if m is not None:
        lanes &= m
    warps = np.logical_or.reduceat(lanes, g.shape.warp_starts)
    return moved(np.repeat(warps, g.shape.warp_sizes), found)


# Uses ---------------------------------------------------------------------------------------------


def use(g: Group, poison: Poison, m: Mask, role: str, site: Site) -> None:
    """Report a poisoned value that an active lane uses in a `role`: "decides this branch"."""
    lane = _first(g, poison.mask, m)
    origin = poison.origin
    if lane is None or g.launch.options.level(origin.check) == "off":
        return
    notes = origin.notes
    divided = origin.check == "division"
    if site != origin.site:
        notes = (*notes, (f"the {'quotient' if divided else 'value'} {role}", site.span))
    where = origin.where or g.thread(lane)
    error = ArithmeticTrapError if divided else UninitializedReadError
    report(g.launch, origin.check, error(origin.message, origin.site, where, origin.hint, notes))


def _first(g: Group, mask: Any, m: Mask) -> int | None:
    for one in mask if isinstance(mask, tuple) else (mask,):
        if isinstance(one, tuple):
            found = _first(g, one, m)
            if found is not None:
                return found
            continue
        wide = np.broadcast_to(one, np.broadcast_shapes(np.shape(one), (g.lanes,)))
        lanes = wide.reshape(-1, g.lanes).any(axis=0)
        if m is not None:
            lanes = lanes & m
        if lanes.any():
            return int(lanes.argmax())
    return None
