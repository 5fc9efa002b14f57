"""tcgen05.mma and its commit (PTX ISA 9.7.16.10 and 9.7.16.9.3), of one block.

The instruction descriptor says everything, as for the hardware: types, shape, major modes. Operands
in shared memory are found through descriptors (PTX ISA, "Shared memory descriptor" and "Canonical
layouts"). Products are exact; sums of integers wrap, those of floats are float32 over all of K and
rounded to float16 after each instruction if D is float16: the order and precision of the hardware
are not specified. Instructions complete in order when somebody looks at the mbarrier of a later
commit, as late as the program allows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.hardware.tensor_memory import KINDS, TMEM_COLUMNS, TMEM_LANES, refused_shape
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.machine.mbarriers import arrive_later
from basedsl_cute.sim.machine.state import Group, Mask, PendingMma
from basedsl_cute.sim.machine.tensor_memory import check_allocated, lane_and_column
from basedsl_cute.sim.site import Site

_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
_ACCUMULATORS = {0: np.float16, 1: np.float32, 2: np.int32}
# The descriptor's swizzling mode -> (bits, base, shift) of the byte swizzle, rows that it covers.
_SWIZZLES = {0: (0, 4, 3), 1: (2, 5, 2), 2: (3, 4, 3), 4: (2, 4, 3), 6: (1, 4, 3)}


@dataclass(frozen=True)
class Instruction:
    """The fields of an instruction descriptor of a kind; pairs are for A and B."""

    m: int
    n: int
    k: int
    types: tuple[str, str]
    mn_major: tuple[bool, bool]
    negated: tuple[bool, bool]
    d: Any  # NumPy dtype


@functools.lru_cache(maxsize=256)
def decode(kind: str, bits: int) -> Instruction:
    """Read an instruction descriptor. Raises ValueError for one that the kind does not have."""
    known = KINDS[kind]
    names = {code: name for name, code in known.formats.items()}
    codes = bits >> 7 & 7, bits >> 10 & 7
    types = tuple(names.get(code, "") for code in codes)
    if any(name not in _DTYPES for name in types):
        raise ValueError(f"elements of format {codes[0]} and {codes[1]} are not simulated")
    m, n = (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3
    refused = refused_shape(kind, m, n, 1)
    if refused is not None:
        raise ValueError(refused)
    if bits & 0b1111 or bits >> 30:
        raise ValueError("sparse, saturating and shifting instructions are not simulated")
    pairs = [(bool(bits >> at & 1), bool(bits >> at + 1 & 1)) for at in (13, 15)]
    return Instruction(
        m, n, known.k, (types[0], types[1]), pairs[1], pairs[0], _ACCUMULATORS[bits >> 4 & 3]
    )


def mma(
    g: Group,
    kind: str,
    a_in_tmem: bool,
    d: Any,
    a: Any,
    b: Any,
    number: Any,
    accumulate: Any,
    m: Mask,
    site: Site,
) -> None:
    """Issue tcgen05.mma. Raises SimulationError for more than one thread, a descriptor that the
    instruction does not have, memory that is not allocated, and operands beyond shared memory.
    """
    lane = _issuer(g, m, "tcgen05.mma", site)
    try:
        what = decode(kind, int(number[lane]) & 0xFFFFFFFF)
    except ValueError as error:
        raise SimulationError(
            f"tcgen05.mma of kind {kind} with the instruction descriptor "
            f"{int(number[lane]) & 0xFFFFFFFF:#010x}: {error}",
            site,
            g.thread(lane),
        ) from None
    first_lane, first = lane_and_column(int(d[lane]))
    check_allocated(g, range(first, first + what.n), "tcgen05.mma writes", site)
    rows = _rows(what.m) + first_lane
    if int(rows.max()) >= TMEM_LANES:
        raise SimulationError(
            f"tcgen05.mma writes lanes up to {int(rows.max())} of {TMEM_LANES}",
            site,
            g.thread(lane),
        )
    columns = np.arange(first, first + what.n)
    mask = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.bool_)
    mask[np.ix_(rows, columns)] = True
    read_a = (
        _tmem_operand(g, what, int(a[lane]), site)
        if a_in_tmem
        else _smem_operand(g, what, 0, int(a[lane]), site)
    )
    read_b = _smem_operand(g, what, 1, int(b[lane]), site)
    adds = bool(accumulate[lane])
    tmem = g.block.tensor_memory

    def perform() -> None:
        place = np.ix_(rows, columns)
        before: Any = 0
        if adds:
            if not tmem.written[place].all():
                raise UninitializedReadError(
                    "a tcgen05.mma adds to tensor memory that nobody has written",
                    site,
                    g.thread(lane),
                    hint="mma.set(tcgen05.Field.ACCUMULATE, False) for the first one",
                )
            before = _values(tmem.words[place], what.d)
        tmem.words[place] = _bits(_product(what, read_a(), read_b(), before))
        tmem.written[place] = True

    tmem.pending.append(PendingMma(perform, mask, range(first, first + what.n), site))
    tmem.issued += 1


def commit(g: Group, address: Any, m: Mask, site: Site) -> None:
    """Have an mbarrier arrive when all issued so far is complete (tcgen05.commit)."""
    lane = _issuer(g, m, "tcgen05.commit", site)
    tmem = g.block.tensor_memory
    serial = tmem.issued

    def complete() -> None:
        while tmem.pending and tmem.issued - len(tmem.pending) < serial:
            tmem.pending.pop(0).perform()

    arrive_later(g, int(address[lane]), lane, site, complete)


def _issuer(g: Group, m: Mask, what: str, site: Site) -> int:
    """The lane that issues an instruction; SimulationError unless it is one."""
    lanes = np.arange(g.lanes) if m is None else np.flatnonzero(m)
    if len(lanes) != 1:
        raise SimulationError(
            f"{what} by {len(lanes)} threads: one thread issues it",
            site,
            g.thread(int(lanes[0])),
            hint="with cute.arch.elect_one():",
        )
    return int(lanes[0])


def _rows(m: int) -> Any:
    """The lane of each row of D (PTX ISA 9.7.16.10.5, layouts D for M 128, F for 64)."""
    row = np.arange(m)
    return row if m == 128 else row // 16 * 32 + row % 16


def _values(words: Any, dtype: Any) -> Any:
    """The elements that words of tensor memory hold; 16-bit ones in the lower half."""
    if np.dtype(dtype).itemsize == 4:
        return words.view(dtype)
    return (words & np.uint32(0xFFFF)).astype(np.uint16).view(dtype)


def _bits(values: Any) -> Any:
    values = np.ascontiguousarray(values)
    if values.dtype.itemsize == 4:
        return values.view(np.uint32)
    return values.view(np.uint16).astype(np.uint32)


def _product(what: Instruction, a: Any, b: Any, before: Any) -> Any:
    if what.d is np.int32:
        product = a.astype(np.float64) @ b.astype(np.float64).T  # exact: K is 32
        return (before + product.astype(np.int64)).astype(np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        product = _wide(what, 0, a) @ _wide(what, 1, b).T
        return (np.float32(1) * before + product).astype(what.d)


def _wide(what: Instruction, which: int, values: Any) -> Any:
    """An operand as float32, which holds products of two exactly."""
    if what.types[which] == "tf32":  # the hardware does not read the low 13 bits
        values = (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view("f4")
    wide = values.astype(np.float32)
    return -wide if what.negated[which] else wide


def _tmem_operand(g: Group, what: Instruction, address: int, site: Site) -> Callable[[], Any]:
    """A in tensor memory, K packed into columns of 32 bits: a row of 256 bits in a lane."""
    tmem = g.block.tensor_memory
    first_lane, first = lane_and_column(address)
    check_allocated(g, range(first, first + 8), "tcgen05.mma reads", site)
    place = np.ix_(_rows(what.m) + first_lane, np.arange(first, first + 8))

    def read() -> Any:
        if not tmem.written[place].all():
            raise UninitializedReadError(
                "operand A of a tcgen05.mma has tensor memory that nobody has written", site
            )
        return np.ascontiguousarray(tmem.words[place]).view(_DTYPES[what.types[0]])

    return read


def _smem_operand(
    g: Group, what: Instruction, which: int, descriptor: int, site: Site
) -> Callable[[], Any]:
    """An operand in shared memory, `(rows, k)`, read when it is called."""
    dtype = np.dtype(_DTYPES[what.types[which]])
    rows = (what.m, what.n)[which]
    number = descriptor & 0xFFFF_FFFF_FFFF_FFFF
    offset = operand_addresses(number, not what.mn_major[which], rows, what.k, dtype.itemsize)
    offset = offset - g.shared.base
    letter = "AB"[which]
    if number >> 46 & 3 != 1:
        raise SimulationError(
            f"the descriptor {number:#018x} of operand {letter} is none of tcgen05: bits 46 and 47 "
            "are 1",
            site,
        )
    if int(offset.min()) < 0 or int(offset.max()) + dtype.itemsize > g.shared.size:
        raise SimulationError(
            f"operand {letter} of a tcgen05.mma reaches beyond the block's shared memory "
            f"(descriptor {number:#018x})",
            site,
        )
    index = offset // dtype.itemsize

    def read() -> Any:
        if g.shared.written is not None:
            unwritten = g.shared.written_view(dtype.itemsize)[index] != -1
            if unwritten.any():
                bad = int(offset[unwritten].min())
                name, start, _ = g.shared_variable(bad + g.shared.base)
                raise UninitializedReadError(
                    f"operand {letter} of a tcgen05.mma has shared memory that nobody has written: "
                    f"byte offset {bad + g.shared.base - start} of `{name}`",
                    site,
                    hint="wait for the copy that fills it",
                )
        return g.shared.view(dtype)[index]

    return read


@functools.lru_cache(maxsize=1024)
def operand_addresses(descriptor: int, is_k: bool, rows: int, k: int, size: int) -> Any:
    """The shared address of each element of an operand, `(rows, k)`, as its descriptor says."""
    start = (descriptor & 0x3FFF) << 4
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    mode = descriptor >> 61
    bits, base, shift = _SWIZZLES[mode]
    width = 128 if mode == 1 else 16 << bits
    mn = np.arange(rows, dtype=np.int64)[:, None]
    kk = np.arange(k, dtype=np.int64)[None, :]
    if is_k:
        byte = kk * size
        linear = mn % 8 * width + mn // 8 * stride
        linear = linear + (byte // 16 * leading + byte % 16 if mode == 0 else byte)
    else:
        byte, together = mn * size, 4 if mode == 1 else 8
        if mode == 0:
            linear = byte // 16 * stride + byte % 16 + kk // 8 * leading + kk % 8 * 16
        else:
            linear = byte % width + byte // width * leading
            linear = linear + kk % together * width + kk // together * stride
    address = start + linear
    return address ^ ((address >> base + shift & ((1 << bits) - 1)) << base)
