"""Operands in shared memory whose descriptor disagrees with the layout of what TMA loaded.

A box of TMA lies in shared memory as rows of its contiguous mode. A canonical layout of an operand
takes 16-byte pieces along one mode, K or MN, from one such row, and goes through the rows by equal
steps in the other mode. Offsets of a descriptor that are not those of the box break that, and the
instruction multiplies other elements than the program means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.hardware.tensor_map_format import SWIZZLE_BITS
from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine.state import Block
from basedsl_cute.sim.site import Site

_PIECE = 16  # bytes that every swizzle leaves together


def check_layout(
    block: Block, offsets: Any, size: int, is_k_major: bool, letter: str, site: Site
) -> None:
    """Raise SimulationError for an operand that TMA loaded, and nobody has changed since, in
    another order than its descriptor says. `offsets` are those of its elements of `size` bytes in
    shared memory, `(rows, k)`.
    """
    along = offsets if is_k_major else offsets.T
    pieces = along[:, :: max(1, _PIECE // size)]
    low, high = int(pieces.min()), int(pieces.max())
    boxes = sorted(
        (at, box) for at, box in block.boxes.items() if at <= high and low < at + box.place.size
    )
    if not boxes:
        return
    number = np.searchsorted([at for at, _ in boxes], pieces, "right") - 1
    row = np.full(pieces.shape, -1, np.int64)
    within = np.zeros(pieces.shape, np.int64)
    for i, (at, box) in enumerate(boxes):
        here = (number == i) & (pieces < at + box.place.size)
        bits, base, shift = SWIZZLE_BITS[box.swizzle]
        address = pieces[here] + block.shared.base
        linear = address ^ ((address >> base + shift & (1 << bits) - 1) << base)
        row[here], within[here] = np.divmod(linear - block.shared.base - at, box.row_bytes)
    number = np.where(row < 0, -1, number)
    wrong = _disagreement(number, row, within, is_k_major)
    if wrong is None:
        return
    used = np.unique(number[number >= 0]).tolist()
    if any((block.shared.raw[boxes[i][1].place] != boxes[i][1].data).any() for i in used):
        return
    raise SimulationError(
        f"the descriptor of operand {letter} of a tcgen05.mma disagrees with the layout of what "
        "TMA loaded",
        site,
        notes=((wrong, None),),
        hint="make the fragment of the tensor that TMA loads: "
        f"tiled_mma.make_fragment_{letter}(s{letter})",
    )


def _disagreement(number: Any, row: Any, within: Any, is_k_major: bool) -> str | None:
    """The first thing that no box can mean, in words; None if there is none. Pieces that TMA has
    not loaded have the box -1.
    """
    mode, other = ("row", "K") if is_k_major else ("step of K", "row")
    if (number < 0).any():
        return _uneven(number, row, mode)
    bad = (row != row[:, :1]).any(1)
    if bad.any():
        i = int(bad.argmax())
        return f"{mode} {i} of the operand has pieces of rows {_listed(row[i])} of TMA's box"
    bad = (within != within[:1]).any(1)
    if bad.any():
        i = int(bad.argmax())
        at = int((within[i] != within[0]).argmax())
        return (
            f"{mode} {i} of the operand begins at byte {int(within[i, at])} of its row of TMA's "
            f"box, {mode} 0 at byte {int(within[0, at])}"
        )
    steps = np.diff(within[0])
    bad = (steps != _PIECE) & (np.diff(number[0]) == 0)
    if bad.any():
        i = int(bad.argmax())
        return (
            f"pieces of 16 bytes that follow each other in the operand's mode {other} are "
            f"{int(steps[i])} bytes apart in TMA's box"
        )
    return _uneven(number, row, mode)


def _uneven(number: Any, row: Any, mode: str) -> str | None:
    """Rows of one box that do not follow each other by equal steps, in words."""
    steps, same = np.diff(row[:, 0]), np.diff(number[:, 0]) == 0
    same &= number[1:, 0] >= 0
    bad = same & (steps != steps[same.argmax()])
    if bad.any():
        i = int(bad.argmax())
        return (
            f"{mode}s {i} and {i + 1} of the operand are rows {int(row[i, 0])} and "
            f"{int(row[i + 1, 0])} of TMA's box, {mode}s 0 and 1 rows {int(row[0, 0])} and "
            f"{int(row[1, 0])}"
        )
    return None


def _listed(rows: Any) -> str:
    return " and ".join(map(str, dict.fromkeys(rows.tolist())))
