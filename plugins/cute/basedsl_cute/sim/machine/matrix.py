"""Matrix instructions of warps: mma.sync, also with scale factors, ldmatrix and stmatrix.

`algebra.warp_mma` says which lane holds which element, a transcription of PTX ISA 9.7.14.5, "Matrix
Fragments for mma". Products and sums are computed in float64, which holds them exactly for operands
of 8 and 16 bits and integers, and rounded once; the hardware's order of additions is not specified.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from basedsl_cute.algebra import warp_mma
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.sim.errors import UninitializedReadError, WarpError
from basedsl_cute.sim.machine import poison as poisons
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.load_store import load_memory, store_memory
from basedsl_cute.sim.machine.poison import Poison
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.machine.warp import FULL, check_members
from basedsl_cute.sim.site import Site

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32,
    "f64": np.float64, "s8": np.int8, "u8": np.uint8, "s32": np.int32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
TYPES = frozenset(DTYPES)
# Elements that have a byte each beside others, and the bit of it where they begin.
_NARROW: dict[str, Any] = {
    "e2m3": (ml_dtypes.float6_e2m3fn, 6, 0), "e3m2": (ml_dtypes.float6_e3m2fn, 6, 0),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4, 2),
}  # fmt: skip
_SCALES: dict[str, Any] = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}


@dataclass(frozen=True)
class MmaInstruction:
    """An mma.sync: its shape (m, n, k) and the element types of D (and C), of A and of B."""

    shape: tuple[int, int, int]
    d: str
    a: str
    b: str
    site: Site


def registers(elements: int, kind: str) -> int:
    """The number of registers of 32 bits (64 for f64) in which a lane holds its part of `elements`
    elements of the type `kind`.
    """
    bits: int = np.dtype(DTYPES[kind]).itemsize * 8
    return elements * bits // WARP_SIZE // max(32, bits)


@functools.cache
def _positions(shape: tuple[int, int, int], bits: int, operand: str) -> Any:
    """The column-major index in the operand's matrix of each lane's values, `(32, values)`."""
    layout = getattr(warp_mma(shape, bits), f"tv_layout_{operand}")
    values = layout[1]
    count = int(np.prod(np.array(_flat(values.shape))))
    return np.array([[layout((lane, v)) for v in range(count)] for lane in range(WARP_SIZE)])


def _flat(x: Any) -> list[int]:
    return [leaf for part in x for leaf in _flat(part)] if isinstance(x, tuple) else [x]


def mma_sync(
    g: Group, what: MmaInstruction, a: list[Any], b: list[Any], c: list[Any], m: Mask
) -> Any:
    """The registers of D = A B + C as a tuple, from lists of the registers of A, B and C. Raises
    WarpError for a part of a warp, and UninitializedReadError.
    """
    _whole_warps(g, m, what.site)
    _check_sums(g, c, what)
    plan = plan_of(what, g.lanes // WARP_SIZE)
    left = _values(a, what.a, g.lanes, plan.left.size // g.lanes).take(plan.left)
    right = _values(b, what.b, g.lanes, plan.right.size // g.lanes).take(plan.right)
    total = (left @ right).take(plan.out)
    total += _values(c, what.d, g.lanes, len(total))
    return _registers(rounded(total, what), what.d)


def rounded(total: Any, what: MmaInstruction) -> Any:
    """Sums in float64 in the type of D."""
    if what.d == "s32":
        return total.astype(np.int64).astype(np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        return total.astype(DTYPES[what.d])


def _registers(values: Any, kind: str) -> Any:
    """The registers that hold values of a type, `(values, lanes)`."""
    if kind == "f16":
        return tuple(values[i : i + 2] for i in range(0, len(values), 2))
    return tuple(values)


def mma_many(
    g: Group,
    whats: tuple[MmaInstruction, ...],
    a: tuple[list[Any], ...],
    b: tuple[list[Any], ...],
    c: tuple[list[Any], ...],
    which_a: list[int],
    which_b: list[int],
) -> list[Any]:
    """The registers of several products of one shape: what `mma_sync` gives for each of `c`, with
    the operands in `a` and `b` at the numbers in `which_a` and `which_b`.
    """
    what = whats[0]
    _whole_warps(g, None, what.site)
    for each, added in zip(whats, c, strict=True):
        _check_sums(g, added, each)
    plan = plan_of(what, g.lanes // WARP_SIZE)
    lefts, rights = (
        np.stack([_values(one, kind, g.lanes, places.size // g.lanes).take(places) for one in held])
        for held, kind, places in ((a, what.a, plan.left), (b, what.b, plan.right))
    )
    products = lefts[which_a] @ rights[which_b]
    total = products.reshape(len(c), -1).take(plan.out, axis=1)
    for i, added in enumerate(c):
        total[i] += _values(added, what.d, g.lanes, total.shape[1])
    return [_registers(one, what.d) for one in rounded(total, what)]


class MmaPlan(NamedTuple):
    """Places of the elements of every warp's A and B, `(warps, m, k)` and `(warps, k, n)`, among
    the lanes' values, `(values, lanes)`; and of the lanes' values of D, `(values, lanes)`, among
    the elements of every warp's D.
    """

    left: Any
    right: Any
    out: Any


@functools.lru_cache(maxsize=32)
def plan_of(what: MmaInstruction, warps: int) -> MmaPlan:
    """The places of the elements of a product of `warps` warps."""
    rows, columns, depth = what.shape
    bits = np.dtype(DTYPES[what.a]).itemsize * 8
    lanes = warps * WARP_SIZE
    first = np.arange(0, lanes, WARP_SIZE)[:, None]
    found = []
    for operand, count in (("A", rows), ("B", columns)):
        places = _positions(what.shape, bits, operand)  # (lanes of a warp, values)
        held = np.empty(count * depth, np.int64)
        held[places] = np.arange(places.shape[1]) * lanes + np.arange(WARP_SIZE)[:, None]
        found.append((first + held).reshape(warps, depth, count))
    places = _positions(what.shape, bits, "C").T[:, None, :]  # (values, 1, lanes of a warp)
    column, row = places // rows, places % rows
    start = np.arange(warps)[:, None] * (rows * columns)
    out = (start + row * columns + column).reshape(-1, lanes)
    left = np.ascontiguousarray(found[0].transpose(0, 2, 1))
    return MmaPlan(left, np.ascontiguousarray(found[1]), out)


def _values(held: list[Any], kind: str, lanes: int, count: int) -> Any:
    """The elements in registers, `(values, lanes)` in float64."""
    wide = np.empty((count, lanes))
    each = count // len(held)
    dtype = np.dtype(DTYPES[kind])
    for i, register in enumerate(held):
        if register.dtype != dtype or kind == "tf32":
            register = _elements(register, kind, lanes)
        wide[i * each : (i + 1) * each] = register
    return wide


@dataclass(frozen=True)
class ScaledMmaInstruction(MmaInstruction):
    """An mma.sync with `factors` scale factors of the type `scale` for each row of A and column of
    B.
    """

    scale: str = "ue8m0"
    factors: int = 1


def mma_scaled(
    g: Group, what: ScaledMmaInstruction, a: list[Any], b: list[Any], c: list[Any],
    scales: list[Any], m: Mask,
) -> Any:  # fmt: skip
    """The registers of D = (A SFA) (B SFB) + C, as `mma_sync`.

    `scales` are (factors, byte, thread) of A, then of B. Of the four lanes that share a row of A,
    the pair `thread` has the factors, its first lane those of the row, its second those of the row
    8 below; of the lanes of a column of B the one with that number (PTX ISA, "mma with block
    scaling", scaling data and selectors).
    """
    _whole_warps(g, m, what.site)
    _check_sums(g, c, what)
    rows, columns, depth = what.shape
    bits = 256 // depth
    operands = []
    for held, kind, operand, count in ((a, what.a, "A", rows), (b, what.b, "B", columns)):
        values = np.concatenate([_scaled_elements(r, kind, bits, g.lanes) for r in held])
        places = _positions(what.shape, bits, operand)
        operands.append(_in_place(values, places, count, depth))
    row, column = np.arange(rows), np.arange(columns)
    lanes = (row % 8 * 4 + row // 8, column * 4)
    for i, (first, step) in enumerate(zip(lanes, (2, 1), strict=True)):
        words, byte, thread = scales[3 * i : 3 * i + 3]
        factors = _factors(g, what, words, byte, first + step * _selector(thread, g))
        operands[i] = operands[i] * np.repeat(factors, depth // what.factors, axis=2)
    places = _positions(what.shape, bits, "C")
    total = operands[0] @ operands[1].transpose(0, 2, 1) + _matrix(
        g, c, what.d, places, rows, columns
    )
    with np.errstate(over="ignore", invalid="ignore"):
        result = total.astype(np.float32)
    flat = result.transpose(0, 2, 1).reshape(len(result), -1)
    return tuple(np.ascontiguousarray(v) for v in flat[:, places].reshape(g.lanes, -1).T)


def _selector(value: Any, g: Group) -> int:
    """The one value of a selector, which all lanes have."""
    return int(np.broadcast_to(value, (g.lanes,))[0])


def _factors(g: Group, what: ScaledMmaInstruction, words: Any, byte: Any, lanes: Any) -> Any:
    """The factors (warps, rows or columns, factors) that the `lanes` of each warp hold."""
    held = np.ascontiguousarray(np.broadcast_to(words, (g.lanes,)))
    raw = held.view(np.uint8).reshape(-1, WARP_SIZE, 4)[:, lanes]
    first = _selector(byte, g)
    chosen: Any = raw[:, :, first : first + what.factors]
    if what.scale == "ue4m3":
        chosen = chosen & 0x7F
    return np.ascontiguousarray(chosen).view(_SCALES[what.scale]).astype(np.float64)


def _scaled_elements(register: Any, kind: str, bits: int, lanes: int) -> Any:
    """The elements in a register, `(elements, lanes)` in float64, in `bits` each."""
    words = np.ascontiguousarray(np.broadcast_to(register, (lanes,)))
    raw: Any = words.view(np.uint8).reshape(lanes, 4)
    if bits == 4:
        raw = np.stack([raw & 15, raw >> 4], axis=2).reshape(lanes, 8)
    elif kind in _NARROW:
        _, width, start = _NARROW[kind]
        raw = raw >> start & (1 << width) - 1
    dtype = _NARROW[kind][0] if kind in _NARROW else DTYPES[kind]
    return np.ascontiguousarray(raw).view(dtype).astype(np.float64).T


def product_poison(
    g: Group,
    what: MmaInstruction,
    a: list[Poison | None],
    b: list[Poison | None],
    c: list[Poison | None],
) -> Poison | None:
    """The poison of the registers of D: of the rows of A, of the columns of B, of C."""
    rows, columns, depth = what.shape
    bits = np.dtype(DTYPES[what.a]).itemsize * 8
    left = _mask(g, a, _positions(what.shape, bits, "A"), rows, depth).any(axis=2)
    right = _mask(g, b, _positions(what.shape, bits, "B"), columns, depth).any(axis=2)
    places = _positions(what.shape, bits, "C")
    total = _mask(g, c, places, rows, columns) | left[:, :, None] | right[:, None, :]
    flat = total.transpose(0, 2, 1).reshape(len(total), -1)
    values = flat[:, places].reshape(g.lanes, -1).T
    masks = tuple(
        values[i : i + 2] if what.d == "f16" else values[i]
        for i in range(0, len(values), 2 if what.d == "f16" else 1)
    )
    return poisons.moved(masks, *a, *b, *c)


def _mask(g: Group, registers: list[Poison | None], places: Any, rows: int, columns: int) -> Any:
    """The poison of an operand of every warp, `(warps, rows, columns)`."""
    each = places.shape[1] // len(registers)
    masks = [poisons.full(one, (each, g.lanes)) for one in registers]
    per_lane = np.concatenate(masks).T.reshape(-1, WARP_SIZE, places.shape[1])
    flat = np.zeros((len(per_lane), rows * columns), np.bool_)
    flat[:, places] = per_lane
    return flat.reshape(-1, columns, rows).transpose(0, 2, 1)


def _check_sums(g: Group, c: list[Any], what: MmaInstruction) -> None:
    """Raise where all that a lane adds to has the bits that registers hold before they are written.

    For float32 only, where no sum gives these bits.
    """
    if what.d != "f32" or not np.isnan(c[0].flat[0]):
        return
    never = np.all([np.ascontiguousarray(r).view(np.int32) == -1 for r in c], axis=0)
    if never.any():
        error = UninitializedReadError(
            "mma.sync adds to accumulators that nobody has written",
            what.site,
            g.thread(int(never.argmax())),
            hint="fill the accumulator before the loop: acc.fill(0)",
        )
        report(g.launch, "uninitialized", error)


def _matrix(g: Group, registers: list[Any], kind: str, places: Any, rows: int, columns: int) -> Any:
    """The operand of every warp, `(warps, rows, columns)` in float64, from its lanes' registers."""
    values = np.concatenate([_elements(r, kind, g.lanes) for r in registers])  # (values, lanes)
    return _in_place(values.astype(np.float64), places, rows, columns)


def _in_place(wide: Any, places: Any, rows: int, columns: int) -> Any:
    """The matrices `(warps, rows, columns)` of the lanes' values `(values, lanes)`."""
    per_lane = wide.T.reshape(-1, WARP_SIZE, len(wide))
    flat = np.zeros((len(per_lane), rows * columns), wide.dtype)
    flat[:, places] = per_lane
    return flat.reshape(-1, columns, rows).transpose(0, 2, 1)


def _elements(register: Any, kind: str, lanes: int) -> Any:
    """The elements in a register, `(elements, lanes)`."""
    dtype = np.dtype(DTYPES[kind])
    if register.ndim == 2:
        return np.broadcast_to(register, (register.shape[0], lanes))
    if register.dtype == dtype:
        return register[None]
    words = np.ascontiguousarray(register)
    if kind == "tf32":  # the hardware does not read the low 13 bits
        return (words.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)[None]
    return words.view(dtype).reshape(lanes, -1).T


def _whole_warps(g: Group, m: Mask, site: Site) -> None:
    check_members(g, FULL, m, site)
    if (
        m is not None
        and not m.all()
        and (m.reshape(-1, WARP_SIZE).any(1) != m.reshape(-1, WARP_SIZE).all(1)).any()
    ):
        raise WarpError(
            f"{site.op} is executed by a part of a warp", site, g.thread(int(m.argmax()))
        )
    if g.lanes % WARP_SIZE:
        raise WarpError(
            f"{site.op} needs whole warps; the block has {g.lanes} threads", site, g.thread(0)
        )


# Matrices between shared memory and registers ----------------------------------------------------


def load_matrix(
    g: Group, read: MemoryAccess, number: int, turned: bool, address: Any, m: Mask, bits: int = 0
) -> Any:
    """Load `number` 8x8 matrices of 16 bits (ldmatrix), transposed if `turned`: one register per
    lane, int32, or a tuple of them. Lane l of a warp addresses row l % 8 of matrix l / 8. `bits` of
    packed elements, 4 or 6, become bytes (shape m8n16).
    """
    _whole_warps(g, m, read.site)
    asked = g.shape.lane < 8 * number
    asked = None if number == 4 else g.shape.lane < 8 * number
    who = m if asked is None else asked if m is None else asked & m
    rows = load_memory(g, read, address, who)  # (8, lanes) of 16 bits
    if bits:
        rows = np.ascontiguousarray(_unpacked(rows, bits)).view(np.uint16).T
        g.poison = poisons.crossed(g, m, g.poison)
    elif g.poison is not None:
        g.poison = _loaded_poison(g, number, turned)
    matrices = rows.T.reshape(-1, 4, 8, 8)[:, :number]  # warp, matrix, row, column
    if turned:
        matrices = matrices.transpose(0, 1, 3, 2)
    pairs = np.ascontiguousarray(matrices).reshape(-1, number, WARP_SIZE, 2)  # lane: row / 4, pair
    words = np.ascontiguousarray(pairs.astype(np.uint16)).view(np.int32)[..., 0]
    out = tuple(np.ascontiguousarray(words[:, i].reshape(-1)) for i in range(number))
    return out if number > 1 else out[0]


def _unpacked(rows: Any, bits: int) -> Any:
    """The bytes (lanes, 16) of rows (words of 16 bits, lanes) of 16 packed elements."""
    raw = np.ascontiguousarray(rows.T.astype(np.uint16)).view(np.uint8)
    stream = np.unpackbits(raw, axis=1, bitorder="little").reshape(len(raw), 16, bits)
    return np.packbits(stream, axis=2, bitorder="little")[:, :, 0]


def _loaded_poison(g: Group, number: int, turned: bool) -> Poison | None:
    """The poison of the registers of an ldmatrix, from that of its rows."""
    mask = poisons.full(g.poison, (8, g.lanes))
    matrices = mask.T.reshape(-1, 4, 8, 8)[:, :number]
    if turned:
        matrices = matrices.transpose(0, 1, 3, 2)
    pairs = matrices.reshape(-1, number, WARP_SIZE, 2).any(axis=-1)
    masks = tuple(pairs[:, i].reshape(-1) for i in range(number))
    return poisons.moved(masks if number > 1 else masks[0], g.poison)


def load_byte_matrix(
    g: Group, read: MemoryAccess, number: int, address: Any, m: Mask, bits: int = 0
) -> Any:
    """Load `number` 16x16 matrices of bytes (ldmatrix m16n16): two registers per lane for each.

    Lane l addresses row l % 16 of matrix l / 16. Of each matrix, it gets the rows 4 (l % 4) to + 3
    of column l / 4 in one register, and of column l / 4 + 8 in the next. `bits` of packed elements,
    4 or 6, become bytes.
    """
    _whole_warps(g, m, read.site)
    asked = g.shape.lane < 16 * number
    rows = load_memory(g, read, address, asked if m is None else asked & m)  # (8, lanes) of 16 bits
    g.poison = poisons.crossed(g, m, g.poison)
    flat = _unpacked(rows, bits) if bits else np.ascontiguousarray(rows.T).view(np.uint8)
    raw = flat.reshape(-1, WARP_SIZE, 16)  # warp, row, column
    lane = np.arange(WARP_SIZE)[:, None]
    out = []
    for i in range(number):
        for right in (0, 8):
            words = raw[:, 16 * i + 4 * (lane % 4) + np.arange(4)[None, :], lane // 4 + right]
            out.append(np.ascontiguousarray(words).view(np.int32).reshape(-1))
    return tuple(out)


def store_matrix(
    g: Group, write: MemoryAccess, turned: bool, address: Any, words: list[Any], m: Mask
) -> None:
    """Store a matrix for each of `words` (stmatrix): the inverse of `load_matrix`."""
    pairs = _held(g, words, m, write).view(np.uint16).reshape(-1, len(words), 8, 8)
    if turned:
        pairs = pairs.transpose(0, 1, 3, 2)
    _store_rows(g, write, address, pairs, m)


def store_byte_matrix(
    g: Group, write: MemoryAccess, address: Any, words: list[Any], m: Mask
) -> None:
    """Store a 16x8 matrix of bytes, transposed, for each of `words` (stmatrix m16n8).

    Lane l holds, of the 8 rows of 16 bytes in memory, the bytes l / 4 of rows 2 (l % 4) and the
    next one, then the bytes l / 4 + 8 of both.
    """
    held = _held(g, words, m, write).view(np.uint8).reshape(-1, len(words), 8, 4, 2, 2)
    rows = held.transpose(0, 1, 3, 5, 4, 2).reshape(-1, len(words), 8, 16)
    _store_rows(g, write, address, np.ascontiguousarray(rows).view(np.uint16), m)


def _held(g: Group, words: list[Any], m: Mask, write: MemoryAccess) -> Any:
    """The registers (warps, words, lanes) that a whole warp stores."""
    _whole_warps(g, m, write.site)
    held = [np.ascontiguousarray(np.broadcast_to(w, (g.lanes,))) for w in words]
    return np.stack([w.reshape(-1, WARP_SIZE) for w in held], axis=1)


def _store_rows(g: Group, write: MemoryAccess, address: Any, rows: Any, m: Mask) -> None:
    """Store the rows (warps, matrices, 8, 8) of 16 bits where the lanes say."""
    number = rows.shape[1]
    every = np.zeros((len(rows), 4, 8, 8), np.uint16)
    every[:, :number] = rows
    asked = g.shape.lane < 8 * number
    asked = g.shape.lane < 8 * number
    store_memory(
        g, write, address, every.reshape(-1, 8).T.copy(), asked if m is None else asked & m
    )
