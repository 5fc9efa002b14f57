"""Multicast memory of several ranks in inline PTX: one address for a place of every rank (PTX ISA,
"multimem").

A load sums what all ranks have there, a store and an addition change it on all of them. Each is an
access of this thread to every rank's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.sim.errors import MemoryAccessError
from basedsl_cute.sim.machine import atomics, load_store
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.ptx_arithmetic import DTYPES
from basedsl_cute.sim.machine.ptx_program import PtxEffect, PtxInstruction, PtxOperand
from basedsl_cute.sim.machine.ranks import current_rank
from basedsl_cute.sim.machine.state import Mask

_ADD = 1  # of integers, as `atomics` numbers them
# The elements in a register, and the type that sums are kept in.
_ELEMENTS: dict[str, tuple[Any, Any]] = {
    "f32": (np.float32, np.float32),
    "f16x2": (np.float16, np.float32),
    "bf16x2": (ml_dtypes.bfloat16, np.float32),
    "e4m3x4": (ml_dtypes.float8_e4m3fn, np.float16),
    "e5m2x4": (ml_dtypes.float8_e5m2, np.float16),
}
Memory = Callable[[str, tuple[int, ...], int, Any, str, set[str]], MemoryAccess]


def multicast_effect(rest: list[str], site: Any, memory: Memory) -> PtxEffect | None:
    """Return the effect of `multimem` with these modifiers, None for an unknown one. `memory` makes
    the record of an access, of an element type, a shape, a space, a place, a verb and an order.
    """
    kind, *_ = rest
    if kind == "ld_reduce" and rest[-1] in _ELEMENTS and "add" in rest and "v4" in rest:
        access = memory("f32" if rest[-1] == "f32" else "b32", (4,), 1, site, "read", set(rest))
        return PtxEffect(_load_reduce, access, rest[-1])
    if kind == "st" and rest[-2:] == ["v4", "f32"]:
        access = memory("f32", (4,), 1, site, "write", set(rest))
        return PtxEffect(_store_vector, access, "f32")
    if kind == "red" and rest[-2:] == ["add", "s32"]:
        access = memory("s32", (), 1, site, "atomic update", set(rest))
        return PtxEffect(_add, access, "s32")
    return None


def _places(state: Any, operand: PtxOperand, access: MemoryAccess, mask: Mask) -> list[Any]:
    """The addresses in the memory of each rank. Raises MemoryAccessError for those of no multicast
    memory.
    """
    at = state.address(operand, 1)
    here = np.ones(state.g.lanes, np.bool_) if mask is None else mask
    rank = current_rank()
    for low, size, bases in () if rank is None else rank.world.multicast:
        inside = (at >= low) & (at + access.nbytes <= low + size)
        if inside[here].all():
            return [np.where(here, at - low + base, base) for base in bases]
    lane = int(np.flatnonzero(here)[0])
    raise MemoryAccessError(
        f"{int(at[lane]):#x} is no multicast address",
        access.site,
        state.g.thread(lane),
        hint="x.multicast of a symmetric tensor that has one is a tensor of such addresses",
    )


def _parts(one: PtxInstruction) -> tuple[MemoryAccess, Any]:
    assert one.effect is not None and one.effect.access is not None
    return one.effect.access, one.effect.detail


def _load_reduce(state: Any, one: PtxInstruction, mask: Mask) -> None:
    target, place = one.operands
    access, kind = _parts(one)
    element, wide = _ELEMENTS[kind]
    total = None
    for at in _places(state, place, access, mask):
        value = np.ascontiguousarray(load_store.load_memory(state.g, access, at, mask))
        value = value.view(element).astype(wide)
        total = value if total is None else total + value
    rounded = np.ascontiguousarray(np.asarray(total).astype(element)).view(access.dtype)
    for i, part in enumerate(target.parts):
        state.write(part, rounded[i], mask)


def _store_vector(state: Any, one: PtxInstruction, mask: Mask) -> None:
    place, source = one.operands
    access, kind = _parts(one)
    value = np.stack([state.read(part, kind) for part in source.parts])
    for at in _places(state, place, access, mask):
        load_store.store_memory(state.g, access, at, value, mask)


def _add(state: Any, one: PtxInstruction, mask: Mask) -> None:
    place, source = one.operands
    access, kind = _parts(one)
    value = state.read(source, kind).astype(DTYPES[kind])
    for at in _places(state, place, access, mask):
        atomics.atomic_update(state.g, access, _ADD, at, value, mask, False)
