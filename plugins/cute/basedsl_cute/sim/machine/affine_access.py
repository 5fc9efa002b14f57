"""Loads and stores at affine addresses of all lanes: slices and strided views, where no check needs
the lanes one by one.

`load` and `store` give None and False for an access that they leave to `load_store`: one out of
bounds or misaligned, or that a check must look at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.affine import Affine, Extents, reach
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.pending_access import Mesh
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.machine.word_history import PLAIN_READ, PLAIN_WRITE

_every_bit = np.bitwise_and.reduce


def load(g: Group, a: MemoryAccess, address: Affine, m: Mask) -> Any:
    """The values that all lanes read; None if the access must be checked lane by lane."""
    segment = _home(g, a, address, m)
    if segment is None:
        return None
    first, parts = _place(g, segment, address)
    if segment.written is not None:
        marks = _elements(segment.written_view(a.dtype.itemsize), a, address, first, parts)
        if _every_bit(marks, axis=None) != -1:
            return None
    if g.races is not None and not _record(g, a, segment, address, first, parts, PLAIN_READ):
        return None
    got = _elements(segment.view(a.dtype), a, address, first, parts)
    extents = address.grid.extents
    if a.steady and not a.shape and got.flags.c_contiguous and got.size == g.lanes:
        return got.reshape(-1)
    out = np.empty((a.count, *extents) if a.shape else extents, a.dtype)
    out[...] = got
    return out.reshape(*a.shape, -1)


def store(g: Group, a: MemoryAccess, address: Affine, value: Any, m: Mask) -> bool:
    """Write what all lanes store; False if the access must be checked lane by lane."""
    segment = _home(g, a, address, m)
    if segment is None or not segment.writable:
        return False
    first, parts = _place(g, segment, address)
    if not address.is_injective(parts, a.nbytes):
        return False
    if g.races is not None and not _record(g, a, segment, address, first, parts, PLAIN_WRITE):
        return False
    g.launch.stores += 1
    target = _elements(segment.view(a.dtype), a, address, first, parts)
    if np.ndim(value) and value.shape[-1] > 1:
        value = value.reshape(target.shape)
    elif np.ndim(value):
        value = value.reshape(a.count, *(1,) * (target.ndim - 1))
    target[...] = value
    if segment.written is not None:
        _elements(segment.written_view(a.dtype.itemsize), a, address, first, parts)[...] = -1
    return True


def _home(g: Group, a: MemoryAccess, address: Affine, m: Mask) -> Segment | None:
    """The segment that holds what all lanes touch."""
    if m is not None or a.strong or a.boolean or g.launch.guards:
        return None
    segment = g.shared if a.space == 3 else None if a.root is None else g.roots[a.root]
    if segment is None or segment.kind == "local" or a.space in (5, 7):
        return None
    size = a.dtype.itemsize
    if segment.base & (size - 1) or a.align < size:
        return None
    if address.low < segment.base or address.high > segment.end - a.nbytes:
        return None
    bits = address.base
    for part in address.coefficients:
        bits |= part
    return None if bits & a.low_bits else segment


def _place(g: Group, segment: Segment, address: Affine) -> tuple[int, Extents]:
    """The offset of the first lane's bytes, and the distances along the axes of lanes."""
    parts = address.coefficients
    if segment.kind == "shared" and g.shape.blocks > 1:
        copies = [number * segment.stride for number in g.shape.block_parts]
        parts = tuple([a + b for a, b in zip(parts, copies, strict=True)])
    return address.base - segment.base, parts


def _elements(view: Any, a: MemoryAccess, address: Affine, first: int, parts: Extents) -> Any:
    """The elements of an access in a segment's view, by the axes of the lanes; axes along which
    all lanes have one place have one element.
    """
    size = view.dtype.itemsize
    shape = tuple([n if part else 1 for n, part in zip(address.grid.extents, parts, strict=True)])
    if a.shape:
        shape, parts = (a.count, *shape), (size, *parts)
    return np.ndarray(shape, view.dtype, view, first, parts)


def _record(
    g: Group,
    a: MemoryAccess,
    segment: Segment,
    address: Affine,
    first: int,
    parts: Extents,
    kind: int,
) -> bool:
    """Tell the race check of an access to a segment; False if it must be told lane by lane."""
    if g.shadow is not None:
        return False
    if g.races.history(segment, a.dtype.itemsize) is None:
        return True
    if parts is address.coefficients:
        ends = address.low - segment.base, address.high - segment.base
    else:
        ends = reach(address.grid.extents, first, parts)
    mesh = Mesh(address.grid, first, parts, ends[0], ends[1] + a.nbytes)
    g.races.record_mesh(g, a, segment, mesh, kind)
    return True
