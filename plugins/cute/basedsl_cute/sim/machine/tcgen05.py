"""tcgen05.mma (PTX ISA, of that title) of one block and of a pair.

The instruction descriptor says everything, as for the hardware: types, shape, major modes. Operands
are in `tcgen05_operands`. Products and their sums over one instruction's K are exact, then rounded
to float32 and added to D in float32; D of float16 is rounded after each instruction. The order and
precision of the hardware are not specified. Integers wrap, or saturate where that is asked for.

The even block of a pair issues for both. Its rows of A and of D are the first half, and so are its
rows (columns of the product) of B; descriptors and addresses mean the same places in both blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.hardware.tensor_memory import TMEM_COLUMNS, TMEM_LANES
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.machine import tcgen05_operands as operands
from basedsl_cute.sim.machine import tensor_owners
from basedsl_cute.sim.machine.sparse_operand import expanded, sparse_places
from basedsl_cute.sim.machine.state import Group, Mask, PendingTmemWrite, TensorMemory
from basedsl_cute.sim.machine.tcgen05_operands import InstructionDescriptor
from basedsl_cute.sim.machine.tensor_memory import check_allocated, lane_and_column
from basedsl_cute.sim.machine.tensor_queue import begin_smem_read, issue, issuer, leading_blocks
from basedsl_cute.sim.site import Site


@dataclass(frozen=True, slots=True, eq=False)
class MmaForm:
    """The static part of a tcgen05.mma, as translating fixes it. `scale_d` is the exponent s of
    D 2^-s, `vector` the number of elements that share a scale factor (0 without).
    """

    kind: str
    blocks: int
    a_in_tmem: bool
    site: Site
    vector: int = 0
    shifts_a: bool = False
    scale_d: int = 0
    is_ws: bool = False


def mma(
    g: Group,
    form: MmaForm,
    d: Any,
    a: Any,
    b: Any,
    number: Any,
    accumulate: Any,
    m: Mask,
    scales: tuple[Any, Any] | None = None,
    disabled: Any = None,
    metadata: Any = None,
) -> None:
    """Issue tcgen05.mma. `scales` are the addresses of the factors of A and B, `disabled` words
    whose bits are lanes of D that stay as they are, `metadata` of a sparse A is the address of its
    elements' places. Raises SimulationError for more than one
    thread, a descriptor that the instruction does not have, memory that is not allocated, and
    operands beyond shared memory.
    """
    site = form.site
    lane = issuer(g, m, "tcgen05.mma", site)
    blocks = leading_blocks(g, form.blocks, "tcgen05.mma", lane, site)
    bits = int(number[lane]) & 0xFFFFFFFF
    try:
        what = operands.decode(form.kind, bits, form.blocks, form.vector, form.is_ws)
    except ValueError as error:
        raise SimulationError(
            f"tcgen05.mma of kind {form.kind} with the instruction descriptor {bits:#010x}: "
            f"{error}",
            site,
            g.thread(lane),
        ) from None
    if what.is_sparse != (metadata is not None):
        raise SimulationError(
            f"tcgen05.mma{'' if metadata is None else '.sp'} with the instruction descriptor "
            f"{bits:#010x} of a {'sparse' if what.is_sparse else 'dense'} A (bit 2)",
            site,
            g.thread(lane),
        )
    lanes, columns = _accumulator(g, what, int(d[lane]), lane, site)
    span = range(int(columns.min()), int(columns.max()) + 1)
    mask = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.bool_)
    mask[lanes, columns] = True
    reads, stamp = [], None
    for block in blocks:
        touched = []
        check_allocated(g, span, "tcgen05.mma writes", site, block)
        _check_scales_apart(what, span, scales, lane, site)
        if form.a_in_tmem:
            reads.append(operands.tmem_operand(g, what, block, int(a[lane]), site))
        else:
            read, places = operands.smem_operand(g, what, block, 0, int(a[lane]), site)
            reads.append(read)
            touched.append(places)
        read, places = operands.smem_operand(g, what, block, 1, int(b[lane]), site)
        reads.append(read)
        stamp = begin_smem_read(g, block, "read by tcgen05.mma", [*touched, places], lane, site)
    read_scales = []
    for block in blocks if scales is not None else ():
        pair = [
            operands.scale_factors(g, what, block, which, int(scales[which][lane]), site)  # type: ignore[index]
            for which in (0, 1)
        ]
        read_scales.append(pair)
    read_places = []
    for block in blocks if metadata is not None else ():
        read_places.append(sparse_places(g, what, block, int(metadata[lane]), site))
    adds = bool(accumulate[lane])
    off = None if disabled is None else _disabled_lanes(disabled, lane, form.blocks)
    issued = _snapshot(reads, form.a_in_tmem)

    def perform() -> None:
        raw = [read() for read in reads]
        _check_unchanged(raw, issued, site)
        b_rows = [operands.wide(what, 1, part) for part in raw[1::2]]
        right = np.concatenate(b_rows)
        for i, block in enumerate(blocks):
            left = operands.wide(what, 0, raw[2 * i], form.a_in_tmem)
            if read_places:
                left = expanded(what, left, read_places[i]())
            if form.shifts_a:
                left = np.concatenate([left[:1], left[:-1]])
            scaled = right
            if read_scales:
                sa, sb = (read() for read in read_scales[i])
                left = left * np.repeat(sa, what.k // what.factors, 1)
                scaled = right * np.repeat(sb, what.k // what.factors, 1)
            keep = None if off is None else off[i][lanes]
            key = (tensor_owners.D, int(d[lane]), what.m, what.n, what.is_ws)
            tensor_owners.take(g, block, (lanes, columns), key, tensor_owners.D, span, site)
            product = left @ scaled.T
            _add(block.tensor_memory, what, form, (lanes, columns), product, adds, keep, g, lane)

    writes = [(block, PendingTmemWrite(mask, span, site)) for block in blocks]
    issue(g, lane, writes, perform, stamp)


def _accumulator(
    g: Group, what: InstructionDescriptor, address: int, lane: int, site: Site
) -> tuple[Any, Any]:
    first_lane, first = lane_and_column(address)
    lanes, columns = operands.accumulator_places(what.m, what.n, what.blocks, what.is_ws)
    lanes, columns = lanes + first_lane, columns + first
    if int(lanes.max()) >= TMEM_LANES or int(columns.max()) >= TMEM_COLUMNS:
        raise SimulationError(
            f"tcgen05.mma writes lanes up to {int(lanes.max())} of {TMEM_LANES} and columns up to "
            f"{int(columns.max())} of {TMEM_COLUMNS}",
            site,
            g.thread(lane),
        )
    return lanes, columns


def _check_scales_apart(
    what: InstructionDescriptor, span: range, scales: tuple[Any, Any] | None, lane: int, site: Site
) -> None:
    """Raise SimulationError if D takes the columns of scale factors."""
    for which, address in enumerate(scales or ()):
        _, first = lane_and_column(int(address[lane]) & 0x3FFF_FFFF)
        rows = what.rows[0] if which == 0 else what.n
        last = first + -(-rows // 32) - 1
        if what.is_long and what.scale_ids[which] + what.factors > 4:
            last += -(-rows // TMEM_LANES) * 4
        if first < span.stop and span.start <= last:
            raise SimulationError(
                f"D of a tcgen05.mma overlaps the scale factors of {'AB'[which]} in tensor memory",
                site,
                notes=(
                    (f"D takes columns {span.start} to {span.stop - 1}", None),
                    (f"the scale factors take columns {first} to {last}", None),
                ),
                hint="place them behind each other: tcgen05.find_tmem_tensor_col_offset(tensor)",
            )


def _snapshot(reads: list[Callable[[], Any]], a_in_tmem: bool) -> list[Any]:
    """The bytes of operands when the instruction is issued; None for A in tensor memory, which an
    instruction before may still write.
    """
    return [None if a_in_tmem and i % 2 == 0 else read() for i, read in enumerate(reads)]


def _check_unchanged(raw: list[Any], issued: list[Any], site: Site) -> None:
    """Raise SimulationError if shared memory has changed since the instruction was issued: it may
    be read at any time until its commit.
    """
    for i, (now, before) in enumerate(zip(raw, issued, strict=True)):
        if before is not None and (now != before).any():
            raise SimulationError(
                f"operand {'AB'[i % 2]} of a tcgen05.mma was overwritten before the instruction "
                "was complete",
                site,
                hint="release its stage of shared memory by tcgen05.commit, not by an arrival",
            )


def _disabled_lanes(words: Any, lane: int, blocks: int) -> list[Any]:
    """True for the lanes of each block that are not written: bit i of word w is lane 32 w + i."""
    found = [int(word[lane]) & 0xFFFFFFFF for word in words]
    each = [found[4 * i : 4 * i + 4] for i in range(blocks)]
    return [
        np.array([four[row // 32] >> row % 32 & 1 for row in range(TMEM_LANES)], np.bool_)
        for four in each
    ]


def _add(
    tmem: TensorMemory,
    what: InstructionDescriptor,
    form: MmaForm,
    place: tuple[Any, Any],
    product: Any,
    adds: bool,
    keep: Any,
    g: Group,
    lane: int,
) -> None:
    """Put D, or the sum with it, in its place."""
    before: Any = 0
    written = tmem.written[place] if keep is None else tmem.written[place] | keep
    if adds:
        if not written.all():
            raise UninitializedReadError(
                "a tcgen05.mma adds to tensor memory that nobody has written",
                form.site,
                g.thread(lane),
                hint="mma.set(tcgen05.Field.ACCUMULATE, False) for the first one",
            )
        before = _values(tmem.words[place], what.d)
    words = _bits(_sum(what, product, before, form.scale_d))
    if keep is not None:
        words = np.where(keep, tmem.words[place], words)
        tmem.written[place] |= ~keep
    else:
        tmem.written[place] = True
    tmem.words[place] = words


def _sum(what: InstructionDescriptor, product: Any, before: Any, scale_d: int) -> Any:
    if what.d is np.int32:
        total = before + product.astype(np.int64)
        if what.saturates:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        kept = np.float32(1) * before * np.float32(2.0**-scale_d)
        return (kept + product.astype(np.float32)).astype(what.d)


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
