"""Warpgroup matrix instructions (PTX ISA, wgmma): a warp computes its 16 of the group's 64 rows.

Operands in shared memory are found through descriptors (PTX ISA, "Matrix Descriptor Format"), laid
out canonically (PTX ISA, "Shared Memory Matrix Layout"; the formulas are those of CuTe's header
mma_sm90_desc.hpp). Products are exact. Sums of integers wrap; sums of floats are float32, rounded
to float16 after each instruction if D is float16: the hardware's order and precision are not
specified (PTX ISA, "wgmma.mma_async", semantics). Instructions complete
when they are waited for (`wgmma_queue`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.hardware.targets import WARP_SIZE, WARPS_PER_WARPGROUP
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.machine import races
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.load_store import load_memory, store_memory
from basedsl_cute.sim.machine.memory import distinct
from basedsl_cute.sim.machine.registers import load_register, register_range, store_register
from basedsl_cute.sim.machine.state import Group, Mask, PendingRegisters
from basedsl_cute.sim.machine.vector_clock import Stamp
from basedsl_cute.sim.machine.wgmma_queue import issue_wgmma
from basedsl_cute.sim.site import Site

_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i8": np.int8,
    "ui8": np.uint8,
}
# Bits 62 and 63 of a descriptor -> how many address bits the swizzle takes.
_SWIZZLE_BITS = {0: 0, 1: 3, 2: 2, 3: 1}


@dataclass(frozen=True, slots=True, eq=False)
class WgmmaInstruction:
    """One op `cute.wgmma`, as translating fixes it: several instructions of shape 64 x `n` x `k`.

    Pairs are for A and B. `steps` are what each instruction adds to the operand: units of a
    descriptor, or rows of registers. `a_registers` is None for A in shared memory.
    """

    n: int
    k: int
    types: tuple[str, str]
    majors: tuple[str, str]
    negated: tuple[bool, bool]
    steps: tuple[tuple[int, ...], tuple[int, ...]]
    accumulator: MemoryAccess
    a_registers: MemoryAccess | None
    site: Site


def mma_async(
    g: Group, w: WgmmaInstruction, acc: Any, a: Any, b: Any, accumulate: Any, m: Mask
) -> None:
    """Issue all instructions of one op. `acc`, `a` and `b` are addresses of registers, or
    descriptors of shared memory. Raises SimulationError for a part of a warp or warpgroup, for
    operands outside of shared memory, and for registers that no fence orders.
    """
    if m is not None or g.lanes != WARP_SIZE:
        raise SimulationError(
            "wgmma in divergent control flow: all lanes of the warp must be here", w.site
        )
    if g.first_warp // WARPS_PER_WARPGROUP >= g.block.warps // WARPS_PER_WARPGROUP:
        raise SimulationError(
            f"wgmma by warp {g.first_warp} of a block of {g.block.warps} warps",
            w.site,
            g.thread(0),
            hint="a wgmma is executed by the four warps of a warpgroup, 4 n to 4 n + 3",
        )
    used = [_registers_of(g, w.accumulator, acc, True)]
    reads = []  # byte offsets of the operands in shared memory, a list of steps for each
    if w.a_registers is None:
        reads.append(_steps(g, w, 0, a, 16 * (g.first_warp % 4), 16))
        registers = None
    else:
        registers = _from_registers(g, w, a)
        used.append(_registers_of(g, w.a_registers, a, False))
    reads.append(_steps(g, w, 1, b, 0, w.n))
    stamps = () if g.shadow is None else tuple(_stamp(g, w, parts) for parts in reads)
    accumulates = bool(np.ravel(accumulate)[0])

    def perform() -> None:
        left = registers or [_read(g, w, 0, part) for part in reads[0]]
        right = [_read(g, w, 1, part) for part in reads[-1]]
        before = _load_fragment(g, w.accumulator, acc)
        if accumulates:
            _check_written(g, w, before)
        else:
            before = np.zeros_like(before)
        _store_fragment(g, w.accumulator, acc, _multiplied(w, left, right, before))

    issue_wgmma(g, w.site, perform, tuple(u for u in used if u is not None), stamps)


def _registers_of(
    g: Group, access: MemoryAccess, address: Any, is_accumulator: bool
) -> PendingRegisters | None:
    if access.register is None:
        return None
    first, end = register_range(g, access, address)
    return PendingRegisters(access.register, first, end, is_accumulator, access.site)


def _stamp(g: Group, w: WgmmaInstruction, parts: list[Any]) -> Stamp:
    assert g.shadow is not None
    size = np.dtype(_DTYPES[w.types[0]]).itemsize
    touched = distinct(np.concatenate(parts, axis=1))[:, None] + np.arange(size)
    return races.begin_async_read(g.shadow, g, w.site, "read by wgmma", touched, 0)


def _load_fragment(g: Group, access: MemoryAccess, address: Any) -> Any:
    """The registers of a fragment, `(values, 32)`."""
    if access.register is not None:
        return load_register(g, access, address, None)
    return load_memory(g, access, np.broadcast_to(address, (WARP_SIZE,)), None)


def _store_fragment(g: Group, access: MemoryAccess, address: Any, values: Any) -> None:
    if access.register is not None:
        store_register(g, access, address, values, None)
    else:
        store_memory(g, access, np.broadcast_to(address, (WARP_SIZE,)), values, None)


def _check_written(g: Group, w: WgmmaInstruction, before: Any) -> None:
    """Raise for accumulators with the bits that registers hold before they are written: a NaN that
    no float32 sum gives, and that float16 sums do not give in all values of a lane.
    """
    if before.dtype.kind != "f":
        return
    never = before.view(f"i{before.dtype.itemsize}") == -1
    never = never.any(axis=0) if before.dtype == np.float32 else never.all(axis=0)
    if never.any():
        raise UninitializedReadError(
            "a wgmma adds to accumulators that nobody has written",
            w.site,
            g.thread(int(never.argmax())),
            hint="mma.set(warpgroup.Field.ACCUMULATE, False) for the first one, or "
            "accumulators.fill(0)",
        )


def _multiplied(w: WgmmaInstruction, left: list[Any], right: list[Any], before: Any) -> Any:
    """The accumulators after all steps, `(n / 2, 32)`."""
    rows, columns = _fragment(w.n)
    if before.dtype == np.float16:
        for a, b in zip(left, right, strict=True):
            product = _wide(w, 0, a) @ _wide(w, 1, b).T
            with np.errstate(over="ignore", invalid="ignore"):
                before = (before + product[rows, columns]).astype(np.float16)
        return before
    product = _wide(w, 0, np.concatenate(left, axis=1)) @ _wide(w, 1, np.concatenate(right, 1)).T
    product = product[rows, columns]
    if before.dtype == np.int32:
        return (before + product.astype(np.int64)).astype(np.int32)
    return before + product


def _wide(w: WgmmaInstruction, which: int, values: Any) -> Any:
    """An operand in a type that holds its products exactly: float32, or for integers float64, which
    is faster than integers and holds the sums too.
    """
    kind = w.types[which]
    if kind in ("i8", "ui8"):
        return values.astype(np.float64)
    if kind == "tf32":  # the hardware does not read the low 13 bits
        values = (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view("f4")
    wide = values.astype(np.float32)
    return -wide if w.negated[which] else wide


@functools.cache
def _fragment(n: int) -> tuple[Any, Any]:
    """Rows and columns of the accumulators of each lane, `(n / 2, 32)` both."""
    lane, value = np.arange(WARP_SIZE)[None, :], np.arange(n // 2)[:, None]
    row = lane // 4 + 8 * (value >> 1 & 1)
    column = 2 * (lane % 4) + (value & 1) + 8 * (value >> 2)
    return row, column


def _from_registers(g: Group, w: WgmmaInstruction, a: Any) -> list[Any]:
    """The warp's 16 rows of A, `(16, k)` for each step, from the fragments of the lanes (PTX ISA,
    "Register Fragments").
    """
    access = w.a_registers
    assert access is not None
    packed = w.k // 8
    values = _load_fragment(g, access, a).view(np.dtype(_DTYPES[w.types[0]]))
    lane, value = np.arange(WARP_SIZE)[None, :], np.arange(w.k // 2)[:, None]
    pair, high, half = value % packed, value // packed & 1, value // (2 * packed)
    row = np.broadcast_to(lane // 4 + 8 * high, (value.shape[0], WARP_SIZE))
    column = packed * (lane % 4) + pair + 4 * packed * half
    out = []
    for step in w.steps[0]:
        matrix = np.zeros((16, w.k), values.dtype)
        matrix[row, column] = values[step : step + w.k // 2]
        out.append(matrix)
    return out


def _steps(
    g: Group, w: WgmmaInstruction, which: int, base: Any, first: int, rows: int
) -> list[Any]:
    """Byte offsets into shared memory of an operand's rows, `(rows, k)` for each step."""
    size = np.dtype(_DTYPES[w.types[which]]).itemsize
    is_k = w.majors[which] == "k"
    descriptor = int(np.ravel(base)[0])
    out = []
    for step in w.steps[which]:
        number = (descriptor + step) & 0xFFFF_FFFF_FFFF_FFFF
        offset = _addresses(number, is_k, first, rows, w.k, size) - g.shared.base
        if int(offset.min()) < 0 or int(offset.max()) + size > g.shared.size:
            raise SimulationError(
                f"operand {'AB'[which]} of a wgmma reaches beyond the block's shared memory "
                f"(descriptor {number:#018x})",
                w.site,
                g.thread(0),
            )
        out.append(offset)
    return out


def _read(g: Group, w: WgmmaInstruction, which: int, offset: Any) -> Any:
    """The elements of an operand at byte offsets into shared memory. Raises
    UninitializedReadError.
    """
    dtype = np.dtype(_DTYPES[w.types[which]])
    index = offset // dtype.itemsize
    if g.shared.written is not None and (
        (g.shared.written_view(dtype.itemsize)[index] != -1).any()
    ):
        bad = int(offset[g.shared.written_view(dtype.itemsize)[index] != -1].min())
        name, start, _ = g.shared_variable(bad + g.shared.base)
        raise UninitializedReadError(
            f"operand {'AB'[which]} of a wgmma has shared memory that nobody has written",
            w.site,
            g.thread(0),
            notes=((f"byte offset {bad + g.shared.base - start} of `{name}`", None),),
            hint="wait for the copy that fills it",
        )
    return g.shared.view(dtype)[index]


@functools.lru_cache(maxsize=1024)
def _addresses(descriptor: int, is_k: bool, first: int, rows: int, k: int, size: int) -> Any:
    """The shared address of each element of `rows` rows from `first`, `(rows, k)`."""
    start = (descriptor & 0x3FFF) << 4
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    bits = _SWIZZLE_BITS[descriptor >> 62 & 3]
    mn = np.arange(first, first + rows, dtype=np.int64)[:, None]
    kk = np.arange(k, dtype=np.int64)[None, :]
    if is_k:
        row, byte = mn, kk * size
        width = 16 << bits
        linear = (row % 8) * width + (row // 8) * stride
        linear = linear + (byte // 16 * leading + byte % 16 if bits == 0 else byte)
    else:
        unit = 16 // size  # elements of 16 bytes
        column, line = mn // unit, kk
        if bits == 0:
            linear = column * stride + (line // 8) * leading + (line % 8) * 16
        else:
            across = 1 << bits
            linear = (column % across) * 16 + (column // across) * leading
            linear = linear + (line % 8) * (16 << bits) + (line // 8) * stride
        linear = linear + (mn % unit) * size
    address = start + linear
    return address ^ ((address >> 7 & ((1 << bits) - 1)) << 4)
