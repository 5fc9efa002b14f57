"""wgmma as generated code uses it: a warp computes its 16 of the warpgroup's 64 rows.

Operands in shared memory are found through descriptors (PTX ISA, "Matrix Descriptor Format"), laid
out canonically (PTX ISA, "Shared Memory Matrix Layout"; the formulas are those of CuTe's header
mma_sm90_desc.hpp). Products and sums are float32 or int32; the hardware's own summation order and
precision are not specified. Instructions complete when they are issued.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from basedsl_cute.sim.access import Access
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.records import Site
from basedsl_cute.sim.registers import load_register, store_register

if TYPE_CHECKING:
    from basedsl_cute.sim.group import Group

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
class Wgmma:
    """One op: what is static about it. `a_registers` is None for A in shared memory."""

    n: int
    k: int
    types: tuple[str, str]
    majors: tuple[str, str]
    steps: tuple[tuple[int, ...], tuple[int, ...]]
    accumulator: Access
    a_registers: Access | None
    site: Site


def run(g: Group, w: Wgmma, acc: Any, a: Any, b: Any, accumulate: Any, m: Any) -> None:
    """All steps of one op."""
    if m is not None or g.lanes != 32:
        raise SimulationError(
            "wgmma in divergent control flow: all lanes of the warp must be here", w.site
        )
    exact = np.int32 if w.types[0] in ("i8", "ui8") else np.float32
    if w.a_registers is not None:
        left = _from_registers(g, w, a).astype(exact)
    else:
        base = int(np.ravel(a)[0])
        first = 16 * (g.first_warp % 4)
        blocks = [_read(g, w, 0, base + step, first, 16) for step in w.steps[0]]
        left = np.concatenate(blocks, axis=1).astype(exact)
    base = int(np.ravel(b)[0])
    blocks = [_read(g, w, 1, base + step, 0, w.n) for step in w.steps[1]]
    right = np.concatenate(blocks, axis=1).astype(exact)
    product = left @ right.T
    rows, columns = _fragment(w.n)
    values = product[rows, columns]
    if bool(np.ravel(accumulate)[0]):
        values = values + load_register(g, w.accumulator, acc, None)
    store_register(g, w.accumulator, acc, values, None)


@functools.cache
def _fragment(n: int) -> tuple[Any, Any]:
    """Row and column of each accumulator of each lane, `(n / 2, 32)`."""
    lane, value = np.arange(32)[None, :], np.arange(n // 2)[:, None]
    row = lane // 4 + 8 * (value >> 1 & 1)
    column = 2 * (lane % 4) + (value & 1) + 8 * (value >> 2)
    return row, column


def _from_registers(g: Group, w: Wgmma, a: Any) -> Any:
    """A's 16 rows from the lanes' fragments, all steps side by side."""
    access = w.a_registers
    assert access is not None
    packed = w.k // 8
    values = load_register(g, access, a, None)
    lane, value = np.arange(32)[None, :], np.arange(w.k // 2)[:, None]
    pair, high, half = value % packed, value // packed & 1, value // (2 * packed)
    row = np.broadcast_to(lane // 4 + 8 * high, (value.shape[0], 32))
    column = packed * (lane % 4) + pair + 4 * packed * half
    out = np.zeros((16, w.k * len(w.steps[0])), values.dtype)
    for i, step in enumerate(w.steps[0]):
        out[row, column + i * w.k] = values[step : step + w.k // 2]
    return out


def _read(g: Group, w: Wgmma, which: int, descriptor: int, first: int, rows: int) -> Any:
    """Rows of an operand as `(rows, k)`."""
    dtype = np.dtype(_DTYPES[w.types[which]])
    is_k = w.majors[which] == "k"
    address = _addresses(descriptor & 0xFFFF_FFFF_FFFF_FFFF, is_k, first, rows, w.k, dtype.itemsize)
    offset = address - g.shared.base
    if int(offset.min()) < 0 or int(offset.max()) + dtype.itemsize > g.shared.size:
        raise SimulationError(
            f"operand {'AB'[which]} of a wgmma reaches beyond the block's shared memory "
            f"(descriptor {descriptor:#018x})",
            w.site,
            g.thread(0),
        )
    index = offset // dtype.itemsize
    if g.shared.written is not None and (
        (g.shared.written_view(dtype.itemsize)[index] != -1).any()
    ):
        bad = int(offset[g.shared.written_view(dtype.itemsize)[index] != -1].min())
        name, start, _ = g.shared_variable(bad + g.shared.base)
        raise UninitializedReadError(
            f"operand {'AB'[which]} of a wgmma has shared memory that nobody has written: byte "
            f"offset {bad + g.shared.base - start} of `{name}`",
            w.site,
            g.thread(0),
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
