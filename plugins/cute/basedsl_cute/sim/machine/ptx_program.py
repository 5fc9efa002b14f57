"""Inline PTX, run for a group of lanes: an interpreter over NumPy arrays.

A register has one entry per lane. Addresses of shared memory have 32 bits; one in another block of
the cluster has the block's rank, from 1, in its upper 8.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.sim import numerics as num
from basedsl_cute.sim.machine import atomics, dsmem, load_store, warp
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.cluster_address import RANK_SHIFT, narrowed, widened
from basedsl_cute.sim.machine.ptx_arithmetic import DTYPES, arithmetic_of
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site

PtxOperand = Any  # a Register, a Vector, an Address, a number, or a special register


@dataclass(frozen=True)
class Register:
    """A register, or an operand of the text as `$0`; `negated` of a predicate `!p`."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Vector:
    """Several registers: `{a, b}`."""

    parts: tuple[PtxOperand, ...]


@dataclass(frozen=True)
class PtxAddress:
    """A place in memory: `[base + offset]`."""

    base: PtxOperand
    offset: int = 0


@dataclass(frozen=True)
class Special:
    """A special register, such as `%laneid`."""

    name: str


@dataclass(frozen=True)
class PtxEffect:
    """An instruction that is more than arithmetic: `run(state, instruction, mask)`."""

    run: Callable[[_State, PtxInstruction, Mask], None]
    access: MemoryAccess | None = None
    detail: Any = None


@dataclass(frozen=True)
class PtxInstruction:
    """One instruction: its opcode, what it does besides arithmetic, on what, and the predicate
    under which it does.
    """

    opcode: str
    effect: PtxEffect | None
    operands: tuple[PtxOperand, ...]
    guard: Register | None


@dataclass(frozen=True)
class PtxProgram:
    """Instructions, the registers that operands of the text are, and the types of the results.

    `inputs` has for each input its register and its bits; `tied` the outputs that begin as an
    input. `kinds` are PTX types.
    """

    instructions: tuple[PtxInstruction, ...]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, Any], ...]
    tied: tuple[tuple[str, str], ...]
    site: Site


class _State:
    """The registers of one run."""

    def __init__(self, g: Group, program: PtxProgram) -> None:
        self.g = g
        self.program = program
        self.registers: dict[str, Any] = {}

    def read(self, operand: PtxOperand, kind: str) -> Any:
        """The value of an operand as the PTX type `kind`."""
        dtype = DTYPES[kind]
        if isinstance(operand, Register):
            value = self.registers.get(operand.name)
            if value is None:
                value = np.zeros(self.g.lanes, dtype)
            value = as_type(value, dtype)
            return ~value if operand.negated else value
        if isinstance(operand, Special):
            return as_type(np.broadcast_to(_SPECIAL[operand.name](self.g), (self.g.lanes,)), dtype)
        if isinstance(operand, Vector):
            parts = [self.read(part, f"b{8 * dtype.itemsize // len(operand.parts)}")
                     for part in operand.parts]  # fmt: skip
            return np.stack(parts, axis=-1).reshape(self.g.lanes, -1).view(dtype).reshape(-1)
        return np.full(self.g.lanes, number_of(operand, dtype))

    def write(self, operand: PtxOperand, value: Any, mask: Mask) -> None:
        """Set a register in the lanes of `mask`; others keep what they had."""
        if isinstance(operand, Vector):
            bits = value.dtype.itemsize * 8 // len(operand.parts)
            parts = np.ascontiguousarray(value).view(DTYPES[f"b{bits}"])
            for i, part in enumerate(operand.parts):
                self.write(part, parts.reshape(len(value), -1)[:, i], mask)
            return
        if operand.name == "_":
            return
        old = self.registers.get(operand.name)
        if mask is not None:
            old = np.zeros_like(value) if old is None else as_type(old, value.dtype)
            value = np.where(mask, value, old)
        self.registers[operand.name] = value

    def address(self, operand: PtxAddress, space: int) -> Any:
        """The simulator's addresses of a place."""
        base = operand.base
        value = None if not isinstance(base, Register) else self.registers.get(base.name)
        if value is not None and value.dtype.itemsize == 4:
            return widened(self.read(base, "u32").astype(np.int64) + operand.offset)
        wide = self.read(base, "b64") + operand.offset
        return widened(wide) if space in (3, 7) else wide


def as_type(value: Any, dtype: Any) -> Any:
    """The bits of `value` as `dtype`; of another width, the low bits, or extended."""
    if value.dtype == dtype:
        return value
    if value.dtype == np.bool_ or dtype == np.bool_:
        return value.astype(dtype)
    if value.dtype.itemsize == dtype.itemsize:
        return np.ascontiguousarray(value).view(dtype)
    bits = np.ascontiguousarray(value).view(DTYPES[f"u{value.dtype.itemsize * 8}"])
    return bits.astype(DTYPES[f"u{dtype.itemsize * 8}"]).view(dtype)


def number_of(written: Any, dtype: Any) -> Any:
    """A literal as one number of `dtype`, integers by their low bits."""
    if dtype.kind == "f":
        return dtype.type(written)
    if dtype.kind == "b":
        return bool(written)
    bits = int(written) & (1 << 8 * dtype.itemsize) - 1
    return np.array([bits], DTYPES[f"u{8 * dtype.itemsize}"]).view(dtype)[0]


def _thread_index(axis: int, g: Group) -> Any:
    return g.shape.tid[axis]


def _block_index(axis: int, g: Group) -> Any:
    return g.ctaid(axis)


_SPECIAL: dict[str, Callable[[Group], Any]] = {
    "laneid": lambda g: g.shape.lane.astype(np.int32),
    "warpid": lambda g: g.shape.warp.astype(np.int32),
    **{f"tid.{a}": functools.partial(_thread_index, i) for i, a in enumerate("xyz")},
    **{f"ctaid.{a}": functools.partial(_block_index, i) for i, a in enumerate("xyz")},
    "globaltimer": lambda g: np.full(g.lanes, g.ticks(), np.int64),
    "cluster_ctarank": lambda g: g.cluster_rank(),
    "lanemask_lt": lambda g: (np.int64(1) << g.shape.lane.astype(np.int64)).astype(np.int32) - 1,
    "lanemask_eq": lambda g: (np.int64(1) << g.shape.lane.astype(np.int64)).astype(np.int32),
}
SPECIAL_REGISTERS = frozenset(_SPECIAL)


def run_ptx(g: Group, program: PtxProgram, inputs: Sequence[Any], m: Mask) -> Any:
    """Run a program for the lanes in `m`; the value of its one result, or a tuple of them."""
    state = _State(g, program)
    for (name, bits), value in zip(program.inputs, inputs, strict=True):
        if bits == 32 and value.dtype.itemsize == 8:  # a pointer into shared memory
            value = narrowed(value)
        state.registers[name] = value
    for output, source in program.tied:
        state.registers[output] = state.registers[source]
    for one in program.instructions:
        mask = m
        if one.guard is not None:
            holds = state.read(one.guard, "pred")
            mask = holds if m is None else holds & m
            if not mask.any():
                continue
        if one.effect is not None:
            one.effect.run(state, one, mask)
            continue
        arithmetic = arithmetic_of(one.opcode)
        assert arithmetic is not None
        target, *sources = one.operands
        values = [state.read(x, k) for x, k in zip(sources, arithmetic.sources, strict=True)]
        made = arithmetic.function(*values)
        if isinstance(target, tuple):  # p|q: the second is the opposite
            state.write(target[0], made, mask)
            state.write(target[1], ~made, mask)
        else:
            state.write(target, as_type(made, DTYPES[arithmetic.result]), mask)
    results = tuple(
        as_type(state.registers.get(name, np.zeros(g.lanes, dtype)), dtype)
        for name, dtype in program.outputs
    )
    return results[0] if len(results) == 1 else results


# Effects -----------------------------------------------------------------------------------------


def _detail(one: PtxInstruction) -> Any:
    assert one.effect is not None
    return one.effect.detail


def _access(one: PtxInstruction) -> MemoryAccess:
    assert one.effect is not None and one.effect.access is not None
    return one.effect.access


def nothing(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """Do nothing: a fence or a hint, which changes no value here."""


def sync_warp(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`bar.warp.sync members`: lanes of a warp run in step, so that only the members matter."""
    members = state.read(one.operands[0], "b32")
    warp.check_members(state.g, members, mask, state.program.site)


def vote(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`vote.sync.kind d, p, members`."""
    target, predicate, members = one.operands
    chosen = warp.vote(
        state.g, _detail(one), state.read(members, "b32"), state.read(predicate, "pred"),
        mask, state.program.site,
    )  # fmt: skip
    state.write(target, chosen, mask)


def active_mask(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`activemask.b32 d`."""
    here = np.ones(state.g.lanes, np.bool_) if mask is None else mask
    state.write(one.operands[0], warp.ballot(state.g, here).astype(np.uint32).view(np.int32), mask)


def elect(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`elect.sync d|p, members`."""
    target, members = one.operands
    first, second = target if isinstance(target, tuple) else (target, Register("_"))
    chosen = warp.elect(state.g, state.read(members, "b32"), mask, state.program.site)
    leader = num.trailing_zeros(warp.ballot(state.g, chosen).view(np.int32))
    state.write(first, leader.astype(np.int32), mask)
    state.write(second, chosen, mask)


def shuffle(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`shfl.sync.kind.b32 d[|p], a, b, c, members`."""
    target, value, b, c, members = one.operands
    got, valid = warp.shuffle(
        state.g, _detail(one), state.read(members, "b32"), state.read(value, "b32"),
        state.read(b, "b32"), state.read(c, "b32"), mask, state.program.site,
    )  # fmt: skip
    first, second = target if isinstance(target, tuple) else (target, Register("_"))
    state.write(first, got, mask)
    state.write(second, valid, mask)


def reduce(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`redux.sync.op.type d, a, members`."""
    target, value, members = one.operands
    kind, type_ = _detail(one)
    found = warp.redux(
        state.g, kind, state.read(value, type_), state.read(members, "b32"), mask, False, False,
        state.program.site,
    )  # fmt: skip
    state.write(target, found, mask)


def load(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`ld d, [a]`, of one element or a vector."""
    target, place = one.operands
    access = _access(one)
    value = load_store.load_memory(state.g, access, state.address(place, access.space), mask)
    if not access.shape:
        state.write(target, value, mask)
        return
    for i, part in enumerate(target.parts):
        state.write(part, value[i], mask)


def store(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`st [a], b`, of one element or a vector."""
    place, source = one.operands
    access = _access(one)
    value = _stored(state, source, access, _detail(one))
    at = state.address(place, access.space)
    load_store.store_memory(state.g, access, at, value, mask)


def _stored(state: _State, source: PtxOperand, access: MemoryAccess, kind: str) -> Any:
    if not access.shape:
        return state.read(source, kind)
    return np.stack([state.read(part, kind) for part in source.parts])


def update(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`atom d, [a], b` and `red [a], b`."""
    access = _access(one)
    operation, kind = _detail(one)
    *target, place, value = one.operands
    old = atomics.atomic_update(
        state.g, access, operation, state.address(place, access.space), state.read(value, kind),
        mask, bool(target),
    )  # fmt: skip
    if target:
        state.write(target[0], old, mask)


def update_halves(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`atom d, [a], b` and `red [a], b` of one 16-bit float, or of two in a register."""
    access = _access(one)
    operation, dtype = _detail(one)
    *target, place, value = one.operands
    word = state.read(value, "b32" if access.shape else "b16")
    parts = np.ascontiguousarray(word).view(dtype)
    if access.shape:
        parts = parts.reshape(-1, 2).T
    at = state.address(place, access.space)
    with np.errstate(all="ignore"):
        old = atomics.atomic_update(state.g, access, operation, at, parts, mask, bool(target))
    if target:
        state.write(target[0], np.ascontiguousarray(old.T).view(word.dtype).reshape(-1), mask)


def map_address(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`mapa.shared::cluster d, a, rank`."""
    target, address, rank = one.operands
    kind = _detail(one)
    base = state.read(address, kind).astype(np.int64) & ((1 << RANK_SHIFT) - 1)
    there = base + (state.read(rank, "u32").astype(np.int64) + 1 << RANK_SHIFT)
    state.write(target, there.astype(DTYPES[kind]), mask)


def store_async(state: _State, one: PtxInstruction, mask: Mask) -> None:
    """`st.async [a], b, [mbarrier]`."""
    place, source, barrier = one.operands
    kind, count = _detail(one)
    parts = source.parts if isinstance(source, Vector) else (source,)
    value = np.stack([state.read(part, kind) for part in parts])
    dsmem.store_async(
        state.g, mask, state.program.site, state.address(place, 7), state.address(barrier, 7),
        value if count > 1 else value[0], count * DTYPES[kind].itemsize,
    )  # fmt: skip
