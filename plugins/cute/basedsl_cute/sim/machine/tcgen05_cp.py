"""tcgen05.cp (PTX ISA, of that title): rows of shared memory, found through a descriptor (K-major),
become lanes of tensor memory. For a pair of blocks each copies its own.

Formats expand 16 elements of 4 or 6 bits, packed at the beginning of 16 bytes, to a byte each: 4
bits from bit 2 on, 6 from bit 0 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.hardware.tensor_memory import TMEM_COLUMNS, TMEM_LANES
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.machine import tensor_owners
from basedsl_cute.sim.machine.memory import WRITTEN
from basedsl_cute.sim.machine.state import Block, Group, Mask, PendingTmemWrite
from basedsl_cute.sim.machine.tcgen05_operands import operand_addresses, unpack_codes
from basedsl_cute.sim.machine.tensor_memory import check_allocated, lane_and_column
from basedsl_cute.sim.machine.tensor_queue import begin_smem_read, issue, issuer, leading_blocks
from basedsl_cute.sim.site import Site

_QUARTER = 32
# (shape, copies) -> bytes of a row, and the lanes of each row, a list of them for each copy.
_ROWS = np.arange(TMEM_LANES)
_SHAPES: dict[tuple[str, str], tuple[int, list[Any]]] = {
    ("128x256b", ""): (32, [_ROWS]),
    ("128x128b", ""): (16, [_ROWS]),
    ("4x256b", ""): (32, [_QUARTER * _ROWS[:4]]),
    ("32x128b", "warpx4"): (16, [_ROWS[:32] + _QUARTER * i for i in range(4)]),
    ("64x128b", "warpx2_02_13"): (16, [_ROWS[:64], _ROWS[:64] + 64]),
    ("64x128b", "warpx2_01_23"): (
        16, [_ROWS[:64] // 32 * 64 + _ROWS[:64] % 32 + _QUARTER * i for i in range(2)],
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class CpForm:
    """The static part of a tcgen05.cp, as translating fixes it."""

    shape: str
    copies: str
    source_format: str
    blocks: int
    site: Site


def copy(g: Group, form: CpForm, address: Any, descriptor: Any, m: Mask) -> None:
    """Issue tcgen05.cp. Raises SimulationError for more than one thread, memory that is not
    allocated or beyond shared memory.
    """
    site = form.site
    lane = issuer(g, m, "tcgen05.cp", site)
    blocks = leading_blocks(g, form.blocks, "tcgen05.cp", lane, site)
    size, copies = _SHAPES[form.shape, form.copies]
    first_lane, first = lane_and_column(int(address[lane]) & 0x3FFF_FFFF)
    columns = np.arange(first, first + size // 4)
    if first_lane or int(columns[-1]) >= TMEM_COLUMNS:
        raise SimulationError(
            f"tcgen05.cp writes from lane {first_lane} on, columns up to {int(columns[-1])}",
            site,
            g.thread(lane),
            notes=((f"it begins at lane 0, and there are {TMEM_COLUMNS} columns", None),),
        )
    mask = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.bool_)
    for lanes in copies:
        mask[np.ix_(lanes, columns)] = True
    number = int(descriptor[lane]) & 0xFFFF_FFFF_FFFF_FFFF
    offsets = operand_addresses(number, True, len(copies[0]), size, 1) - g.shared.base
    span = range(first, first + size // 4)
    before, stamp = [], None
    for block in blocks:
        check_allocated(g, span, "tcgen05.cp writes", site, block)
        before.append(_read(g, block, offsets, number, site))
        places = [offsets.reshape(-1, 1)]
        stamp = begin_smem_read(g, block, "read by tcgen05.cp", places, lane, site)

    def perform() -> None:
        for block, issued in zip(blocks, before, strict=True):
            raw = _read(g, block, offsets, number, site)
            if (raw != issued).any():
                raise SimulationError(
                    "the source of a tcgen05.cp was overwritten before the copy was complete",
                    site,
                    hint="release its stage of shared memory by tcgen05.commit, not by an arrival",
                )
            words = np.ascontiguousarray(_expanded(raw, form.source_format)).view(np.uint32)
            tmem = block.tensor_memory
            _, source, _ = g.shared_variable(int(offsets.min()) + g.shared.base)
            key = (tensor_owners.COPY, first, form.shape, form.copies, source)
            tensor_owners.take(g, block, mask, key, tensor_owners.COPY, span, site)
            for lanes in copies:
                tmem.words[np.ix_(lanes, columns)] = words
                tmem.written[np.ix_(lanes, columns)] = True

    writes = [(block, PendingTmemWrite(mask, span, site)) for block in blocks]
    issue(g, lane, writes, perform, stamp)


def _read(g: Group, block: Block, offsets: Any, number: int, site: Site) -> Any:
    shared = block.shared
    if int(offsets.min()) < 0 or int(offsets.max()) >= shared.size:
        raise SimulationError(
            f"the source of a tcgen05.cp reaches beyond the block's shared memory (descriptor "
            f"{number:#018x})",
            site,
        )
    if shared.written is not None and (shared.written[offsets] != WRITTEN).any():
        bad = int(offsets[shared.written[offsets] != WRITTEN].min())
        name, start, _ = g.shared_variable(bad + shared.base)
        raise UninitializedReadError(
            "the source of a tcgen05.cp has shared memory that nobody has written",
            site,
            notes=((f"byte offset {bad + shared.base - start} of `{name}`", None),),
            hint="wait for the copy that fills it",
        )
    return shared.raw[offsets]


def _expanded(raw: Any, source_format: str) -> Any:
    """Rows of bytes, with elements of 4 or 6 bits expanded to a byte each."""
    if not source_format:
        return raw
    chunks = np.ascontiguousarray(raw).reshape(len(raw), -1, 16)
    if source_format == "b4x16_p64":
        return (unpack_codes(chunks, 4) << 2).reshape(raw.shape)
    return unpack_codes(chunks, 6).reshape(raw.shape)


def shift(g: Group, blocks: int, address: Any, m: Mask, site: Site) -> None:
    """Issue tcgen05.shift: 32 bytes of each lane go one lane further, those of the last nowhere;
    lane 0 stays as it is. Raises SimulationError for another lane than 0.
    """
    lane = issuer(g, m, "tcgen05.shift", site)
    members = leading_blocks(g, blocks, "tcgen05.shift", lane, site)
    first_lane, first = lane_and_column(int(address[lane]) & 0x3FFF_FFFF)
    if first_lane:
        raise SimulationError(
            f"tcgen05.shift from lane {first_lane} on: it begins at lane 0", site, g.thread(lane)
        )
    span = range(first, first + 8)
    mask = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.bool_)
    mask[1:, span.start : span.stop] = True
    for block in members:
        check_allocated(g, span, "tcgen05.shift moves", site, block)

    def perform() -> None:
        for block in members:
            tmem = block.tensor_memory
            for moved in (tmem.words, tmem.written):
                moved[1:, span.start : span.stop] = moved[:-1, span.start : span.stop].copy()

    issue(g, lane, [(block, PendingTmemWrite(mask, span, site)) for block in members], perform)
