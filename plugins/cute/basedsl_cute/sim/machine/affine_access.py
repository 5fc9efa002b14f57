"""Loads and stores at affine addresses of all lanes: slices and strided views, where no check needs
the lanes one by one.

`load` and `store` give None and False for an access that they leave to `load_store`: one out of
bounds or misaligned, or that a check must look at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.affine import Affine
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.machine.word_history import PLAIN_READ, PLAIN_WRITE

_INT64 = np.dtype(np.int64)


def load(g: Group, a: MemoryAccess, address: Affine, m: Mask) -> Any:
    """The values that all lanes read; None if the access must be checked lane by lane."""
    view = _view(g, a, address, m)
    if view is None:
        return None
    segment, first, strides = view
    if segment.written is not None:
        marks = _strided(segment.written_view(a.dtype.itemsize), a, address, first, strides)
        if (marks != -1).any():
            return None
    if g.races is not None and not _record(g, a, segment, address, first, PLAIN_READ):
        return None
    if strides is None:
        start = first // a.dtype.itemsize
        return segment.view(a.dtype)[start : start + g.lanes].copy()
    got = _strided(segment.view(a.dtype), a, address, first, strides)
    return got.reshape(*a.shape, -1) if a.shape else got.reshape(-1).copy()


def store(g: Group, a: MemoryAccess, address: Affine, value: Any, m: Mask) -> bool:
    """Write what all lanes store; False if the access must be checked lane by lane."""
    view = _view(g, a, address, m)
    if view is None or not view[0].writable:
        return False
    segment, first, strides = view
    if strides is not None and address.strides(_copies(g, segment)) is None:
        return False
    if g.races is not None and not _record(g, a, segment, address, first, PLAIN_WRITE):
        return False
    g.launch.stores += 1
    target = _strided(segment.view(a.dtype), a, address, first, strides)
    if np.ndim(value) and value.shape[-1] > 1:
        value = value.reshape(target.shape)
    elif np.ndim(value):
        value = value.reshape(a.count, *(1,) * (target.ndim - 1))
    target[...] = value
    if segment.written is not None:
        _strided(segment.written_view(a.dtype.itemsize), a, address, first, strides)[...] = -1
    return True


def _copies(g: Group, segment: Segment) -> int:
    return segment.stride if g.shape.blocks > 1 and segment.kind == "shared" else 0


def _view(
    g: Group, a: MemoryAccess, address: Affine, m: Mask
) -> tuple[Segment, int, tuple[int, ...] | None] | None:
    """The segment, the offset of the first lane's bytes, and the distances between lanes along the
    axes of their grid, None for one run.
    """
    if m is not None or a.strong or a.boolean or g.launch.guards:
        return None
    segment = g.shared if a.space == 3 else None if a.root is None else g.roots[a.root]
    if segment is None or segment.kind == "local" or a.space in (5, 7):
        return None
    size = a.dtype.itemsize
    if segment.base & (size - 1) or a.align < size:
        return None
    low, high = address.low - segment.base, address.high - segment.base
    if low < 0 or high > segment.size - a.nbytes:
        return None
    bits = address.base
    for part in address.coefficients:
        bits |= part
    if bits & a.low_bits:
        return None
    more = _copies(g, segment)
    first = address.base - segment.base
    if not more and not a.shape and address.is_run(size):
        return segment, first, None
    parts = address.coefficients
    return segment, first, (parts[0] + more, *parts[1:])


def _strided(
    view: Any, a: MemoryAccess, address: Affine, first: int, strides: tuple[int, ...] | None
) -> Any:
    """The elements of an access in a segment's view, `(lanes,)` or by the axes of the lanes."""
    size = view.dtype.itemsize
    if strides is None:
        return view[first // size : first // size + address.grid.lanes]
    shape = address.grid.extents
    if a.shape:
        shape, strides = (a.count, *shape), (size, *strides)
    return np.ndarray(shape, view.dtype, view, first, strides)


def _record(
    g: Group, a: MemoryAccess, segment: Segment, address: Affine, first: int, kind: int
) -> bool:
    """Tell the race check of an access to a segment; False if it must be told lane by lane."""
    if g.shadow is not None:
        return False
    size = a.dtype.itemsize
    if g.races.history(segment, size) is None:
        return True
    if segment.kind != "global" or a.shape or not address.is_run(size):
        blocks, *rest = address.coefficients
        parts = (blocks + _copies(g, segment), *rest)
        offset = address.grid.sum_of(parts, _INT64) + (address.base - segment.base)
        if kind == PLAIN_WRITE:  # of different lanes to different places
            g.races.record(g, a, segment, offset, None, kind, np.zeros(1, a.dtype))
        else:
            g.races.record(g, a, segment, offset, None, kind, None)
        return True
    recorded: bool = g.races.record_run(g, a, segment, first, kind)
    if not recorded:
        offset = address.dense - segment.base
        g.races.record(g, a, segment, offset, None, kind, np.zeros(1, a.dtype))
    return True
