"""A sparse operand A of tcgen05.mma.sp: the places of its elements (PTX ISA, "Sparse Matrices").

A row of K elements has K / 2 of them, and 4 bits of metadata for each group of 4 elements that say
which two these are; of tf32 for each group of 2 (one element), of the 4-bit kinds for each group of
8 (two pairs). The bits of a row are in its lane, K / 32 columns of them, from the address on. Those
of the kinds f16 and tf32 are in one column, the selector's: 8 rows, 8 lanes. Of 16 rows the first 8
have the lower halves of the words, and the first half of K is in lanes 0 to 7, the second in 8 to
15 (as CuTe's C++ header `mma_traits_sm100.hpp` has it, `tmem_e_frg`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl_cute.hardware.tensor_memory import TMEM_LANES
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.machine import tensor_owners, tensor_races
from basedsl_cute.sim.machine.state import Block, Group
from basedsl_cute.sim.machine.tcgen05_operands import InstructionDescriptor
from basedsl_cute.sim.machine.tensor_memory import check_allocated, lane_and_column
from basedsl_cute.sim.site import Site

_PLACES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)
_OF_TF32 = (0b0100, 0b1110)
_ONE_COLUMN = ("f16", "tf32")


def sparse_places(
    g: Group, what: InstructionDescriptor, block: Block, address: int, site: Site
) -> Callable[[], Any]:
    """The metadata in a block's tensor memory: a call that reads its 4 bits for each group of
    elements, `(rows, groups)`.
    """
    one = what.kind in _ONE_COLUMN
    first_lane, first = lane_and_column(address & 0x3FFF_FFFF)
    if first_lane or (one and first % (4 if what.selector > 1 else 2)):
        raise SimulationError(
            f"the metadata of a sparse A begin at lane {first_lane}, column {first}",
            site,
            notes=((f"the sparsity selector is {what.selector}", None),),
            hint="they begin at lane 0, those of f16 and tf32 at an even column, or with the "
            "selectors 2 and 3 at a multiple of 4",
        )
    columns = np.arange(first + what.selector, first + what.selector + (1 if one else 2))
    check_allocated(
        g,
        range(int(columns[0]), int(columns[-1]) + 1),
        "tcgen05.mma reads metadata in",
        site,
        block,
    )
    place = np.ix_(np.arange(TMEM_LANES), columns)
    tensor_races.begin_read(g, block, tensor_races.words_at(*place), site)

    def read() -> Any:
        tmem = block.tensor_memory
        if not tmem.written[place].all():
            bad = np.argwhere(~tmem.written[place])[0]
            raise UninitializedReadError(
                f"the metadata of a sparse A in lane {int(bad[0])}, column "
                f"{int(columns[bad[1]])} of tensor memory were never written",
                site,
            )
        tensor_owners.read(g, block, place, "the metadata of A", site)
        raw = np.ascontiguousarray(tmem.words[place]).view(np.uint8)
        bytes_ = _by_rows(raw) if one else raw
        found = np.stack([bytes_ & 15, bytes_ >> 4], -1).reshape(TMEM_LANES, -1)
        known = _OF_TF32 if what.kind == "tf32" else _PLACES
        bad = ~np.isin(found, known)
        if bad.any():
            row, group = np.argwhere(bad)[0]
            raise SimulationError(
                f"the metadata of row {int(row)} of a sparse A are {int(found[row, group]):#06b} "
                f"for group {int(group)} of its elements",
                site,
                notes=((f"there are {', '.join(f'{x:#06b}' for x in known)}", None),),
            )
        return found

    return read


def _by_rows(raw: Any) -> Any:
    """The 4 bytes of each row, of the words of 128 lanes, `(128, 4)`."""
    lanes = raw.reshape(8, 2, 8, 2, 2)  # 16 rows, half of K, lane; half of the rows, 2 bytes
    return np.ascontiguousarray(lanes.transpose(0, 3, 2, 1, 4)).reshape(TMEM_LANES, 4)


def expanded(what: InstructionDescriptor, packed: Any, places: Any) -> Any:
    """A with its zeros, `(rows, K)`, of the elements that it has and their places."""
    rows = len(packed)
    low, high = places & 3, places >> 2
    if what.kind == "tf32":
        at = (low == 2).astype(np.int64)[..., None]
        each = packed.reshape(rows, -1, 1, 1)
    else:
        at = np.stack([low, high], -1).astype(np.int64)
        width = 2 if what.kind in ("mxf4", "mxf4nvf4") else 1
        each = packed.reshape(rows, -1, 2, width)
    groups, count, width = each.shape[1:]
    found = np.zeros((rows, groups, 2 * count, width))
    np.put_along_axis(found, at[..., None], each, 2)
    return found.reshape(rows, what.k)
