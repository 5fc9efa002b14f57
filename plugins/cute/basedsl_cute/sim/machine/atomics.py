"""Atomic read-modify-write by many lanes: the lanes go one after another, lowest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from basedsl_cute.sim import numerics
from basedsl_cute.sim.errors import MemoryAccessError
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.load_store import locate_atomic, release_atomic
from basedsl_cute.sim.machine.state import Group, Mask

Combine = Callable[[Any, Any], Any]


def _unsigned(ufunc: Any) -> Combine:
    return lambda a, b: numerics.signed(ufunc(numerics.unsigned(a), numerics.unsigned(b)))


def _increment(a: Any, b: Any) -> Any:
    """One more, or 0 at the bound `b` (PTX ISA, atom.inc)."""
    return np.where(numerics.unsigned(a) >= numerics.unsigned(b), 0, a + 1).astype(a.dtype)


def _decrement(a: Any, b: Any) -> Any:
    """One less, or the bound `b` from 0 and from beyond it (PTX ISA, atom.dec)."""
    over = (a == 0) | (numerics.unsigned(a) > numerics.unsigned(b))
    return np.where(over, b, a - 1).astype(a.dtype)


# LLVM's atomicrmw operations by number (LLVM language reference, atomicrmw).
COMBINE: dict[int, Combine] = {
    0: lambda a, b: b,
    1: lambda a, b: a + b,
    2: lambda a, b: a - b,
    3: lambda a, b: a & b,
    4: lambda a, b: ~(a & b),
    5: lambda a, b: a | b,
    6: lambda a, b: a ^ b,
    7: np.maximum,
    8: np.minimum,
    9: _unsigned(np.maximum),
    10: _unsigned(np.minimum),
    11: lambda a, b: a + b,
    12: lambda a, b: a - b,
    13: numerics.maxnum,
    14: numerics.minnum,
    15: _increment,
    16: _decrement,
}

# Operations that a ufunc does in place, in lane order, when nobody needs the old values.
_AT = {1: np.add, 2: np.subtract, 3: np.bitwise_and, 5: np.bitwise_or, 6: np.bitwise_xor}
_AT |= {7: np.maximum, 8: np.minimum, 11: np.add, 12: np.subtract}


def _places(
    g: Group, a: MemoryAccess, address: Any, m: Mask, wrote: Any
) -> Iterator[tuple[Any, Any, Any]]:
    """For each segment that active lanes go to: these lanes, the segment as elements, and the index
    of each lane's element. `wrote` is True for the lanes that write, when all is done.
    """
    who = np.arange(g.lanes) if m is None else np.flatnonzero(m)
    for segment, local, lanes, index in locate_atomic(g, a, address[who], who):
        if not segment.writable:
            raise MemoryAccessError(
                f"{a.verb} of `{segment.name}`, which is read-only", a.site, g.thread(int(lanes[0]))
            )
        g.launch.stores += g.launch.member is not None  # other ranks may poll it
        yield lanes, segment.view(a.dtype), index
        release_atomic(g, a, segment, local, lanes, wrote[lanes])


def atomic_update(
    g: Group, a: MemoryAccess, operation: int, address: Any, value: Any, m: Mask, old: bool
) -> Any:
    """Combine memory at `address` with `value` as llvm.atomicrmw does; `operation` is a key of
    `COMBINE`. Gives the old values, `(..., lanes)`, if `old`, else None.
    """
    out = np.zeros((*a.shape, g.lanes), a.dtype) if old else None
    for who, view, index in _places(g, a, address, m, np.ones(g.lanes, np.bool_)):
        before = _updated(a, operation, view, index, value[..., who], old)
        if out is not None:
            out[..., who] = before
    return out


def _updated(a: MemoryAccess, operation: int, view: Any, index: Any, value: Any, old: bool) -> Any:
    """Combine elements of one array with values in lane order; the old elements if `old`."""
    combine = COMBINE[operation]
    if not old and operation in _AT and value.dtype.kind in "iuf":
        _AT[operation].at(view, index, value)
        return None
    count = index.shape[-1]
    before = np.zeros((*a.shape, count), a.dtype)
    lanes = index if index.ndim == 1 else index[0]
    if np.unique(lanes).size == lanes.size:
        before[...] = view[index]
        view[index] = combine(before, value)
    elif operation in (1, 2) and not a.shape:
        before[...] = _running_sum(view, index, value if operation == 1 else -value)
    else:
        for lane in range(count):
            at = index[..., lane : lane + 1]
            before[..., lane : lane + 1] = view[at]
            view[at] = combine(view[at], value[..., lane : lane + 1])
    return before


def _running_sum(view: Any, index: Any, value: Any) -> Any:
    """Add in lane order where lanes meet; the value that each lane found."""
    order = np.argsort(index, kind="stable")
    where, part = index[order], value[order]
    total = np.cumsum(part, dtype=part.dtype)
    first = np.flatnonzero(np.concatenate(([True], where[1:] != where[:-1])))
    sizes = np.diff(np.append(first, where.size))
    base = np.repeat((total - part)[first], sizes)
    found = view[where] + (total - part - base)
    np.add.at(view, index, value)
    out = np.empty_like(found)
    out[order] = found
    return out


def compare_and_swap(
    g: Group, a: MemoryAccess, address: Any, compare: Any, new: Any, m: Mask
) -> tuple[Any, Any]:
    """Store `new` where memory equals `compare` (llvm.cmpxchg): the old values, and where they were
    equal, `(lanes,)` each.
    """
    before = np.zeros(g.lanes, a.dtype)
    same = np.zeros(g.lanes, np.bool_)
    for who, view, index in _places(g, a, address, m, same):
        for lane, at in zip(who.tolist(), index.tolist(), strict=True):
            before[lane] = view[at]
            same[lane] = view[at] == compare[lane]
            if same[lane]:
                view[at] = new[lane]
    return before, same
