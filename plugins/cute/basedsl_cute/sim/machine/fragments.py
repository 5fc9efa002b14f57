"""Matrix instructions of a warp on fragments in registers, many at once.

Kernels load their fragments by several ldmatrix in a row, and multiply them by many mma.sync. Those
of a row whose operands and results lie in arrays of registers are one gather, one product and one
store here. Each function gives False, and has done nothing, where a check must look at the
instructions one by one: where a value that nobody has written is read, or an address is bad.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.sim.machine import matrix
from basedsl_cute.sim.machine import races as race_checks
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.matrix import MmaInstruction
from basedsl_cute.sim.machine.state import Group

Ranges = tuple[tuple[int, int], ...]
"""Rows of an array of registers: the first and the end of each range."""

_ROW = np.dtype("V16")  # of an 8x8 matrix: 8 elements of 16 bits
_U16 = np.dtype(np.uint16)


def ranges_of(rows: Any) -> Ranges:
    """The ranges that consist of some rows."""
    found: list[tuple[int, int]] = []
    for row in sorted(set(np.ravel(rows).tolist())):
        if found and found[-1][1] == row:
            found[-1] = found[-1][0], row + 1
        else:
            found.append((row, row + 1))
    return tuple(found)


def _place(rows: Any) -> Any:
    """An index of rows: a slice if they follow each other."""
    first = int(rows[0])
    follow = np.array_equal(rows, np.arange(first, first + len(rows)))
    return slice(first, first + len(rows)) if follow else rows


def _are_clean(clean: bytearray, ranges: Ranges) -> bool:
    return all(clean.find(0, first, end) < 0 for first, end in ranges)


def _clean(clean: bytearray, ranges: Ranges) -> None:
    for first, end in ranges:
        clean[first:end] = b"\1" * (end - first)


# Products -----------------------------------------------------------------------------------------


class _ProductPlan(NamedTuple):
    """Places among the registers of the elements of all A, `(warps, rows, k)`, and of all B,
    `(warps, k, columns)`; and of the lanes' sums, `(values, lanes)`, among their products.
    """

    left: Any
    right: Any
    out: Any


class RowProducts:
    """Products of one shape and of some of the operands `a` and `b`, each the rows of its values:
    product i is of those at the numbers `which[i]`, adds the rows `c[i]` and goes to `d[i]`.
    """

    def __init__(
        self,
        what: MmaInstruction,
        a: list[list[int]],
        b: list[list[int]],
        c: list[list[int]],
        d: list[list[int]],
        which: list[tuple[int, int]],
    ) -> None:
        self._parts = what, a, b, c, d, which
        self.what = what
        self.reads = tuple(ranges_of(rows) for rows in (a, b, c))
        self.writes = ranges_of(d)
        self._order = np.argsort(np.ravel(d))
        self.c, self.d = (_place(np.ravel(rows)[self._order]) for rows in (c, d))
        self._plans: dict[int, _ProductPlan] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return RowProducts, self._parts

    def plan(self, lanes: int) -> _ProductPlan:
        """The places for a number of lanes."""
        found = self._plans.get(lanes)
        if found is None:
            found = self._plans[lanes] = self._made(lanes)
        return found

    def _made(self, lanes: int) -> _ProductPlan:
        what, a, b, _, _, which = self._parts
        rows, columns, depth = what.shape
        warps = lanes // WARP_SIZE
        one = matrix.plan_of(what, warps)
        left, right = (
            np.stack(
                [np.array(held)[places // lanes] * lanes + places % lanes for held in operands]
            )
            for operands, places in ((a, one.left), (b, one.right))
        )
        left = left.transpose(1, 0, 2, 3).reshape(warps, len(a) * rows, depth)
        right = right.transpose(1, 2, 0, 3).reshape(warps, depth, len(b) * columns)
        warp, place = np.divmod(one.out, rows * columns)
        row, column = np.divmod(place, columns)
        every = [
            (warp * len(a) * rows + i * rows + row) * len(b) * columns + j * columns + column
            for i, j in which
        ]
        out = np.concatenate(every)[self._order]
        parts = (left, right, out)
        return _ProductPlan(*(np.ascontiguousarray(part) for part in parts))


def multiply_rows(
    g: Group, p: RowProducts, a: Any, b: Any, c: Any, d: Any, *clean: bytearray
) -> bool:
    """Multiply fragments: of the arrays of registers that hold A, B, C and D, `clean` says which
    rows all lanes have written. False if a lane has not, or the last warp is not whole.
    """
    if g.lanes % WARP_SIZE:
        return False
    for held, ranges in zip(clean, p.reads, strict=False):
        if not _are_clean(held, ranges):
            return False
    plan = p.plan(g.lanes)
    left, right = a.take(plan.left).astype(np.float64), b.take(plan.right).astype(np.float64)
    total = (left @ right).take(plan.out)
    total += c[p.c]
    d[p.d] = matrix.rounded(total, p.what)
    _clean(clean[3], p.writes)
    return True


# Loads from shared memory -------------------------------------------------------------------------


class RowLoads:
    """Loads of `number` 8x8 matrices of 16 bits each, transposed if `turned`, to the `rows` of an
    array of registers.
    """

    def __init__(
        self, reads: tuple[MemoryAccess, ...], number: int, turned: bool, rows: list[int]
    ) -> None:
        self._parts = reads, number, turned, rows
        self.reads, self.number, self.turned = reads, number, turned
        self.rows = _place(np.array(rows))
        self.writes = ranges_of(rows)
        self._lanes: tuple[Any, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RowLoads, self._parts

    def lanes(self, g: Group) -> Any:
        """The lanes whose addresses count, of all loads one after another."""
        kept = self._lanes
        if kept is None or kept[0] is not g.shape:
            chosen = np.flatnonzero(g.shape.lane < 8 * self.number)
            kept = self._lanes = g.shape, np.tile(chosen, len(self.reads))
        return kept[1]


def load_rows(
    g: Group, p: RowLoads, registers: Any, clean: bytearray, addresses: tuple[Any, ...]
) -> bool:
    """Load matrices from the shared memory at the `addresses` of each load. False if an address is
    bad, or if nobody has written what is there.
    """
    segment, lanes, loads = g.shared, g.lanes, len(addresses)
    if lanes % WARP_SIZE or segment.base & 15:
        return False
    who = p.lanes(g)
    every = np.concatenate(addresses)
    if p.number < 4:
        every = every.reshape(loads, lanes)[:, who[: who.size // loads]].reshape(-1)
    offset = every - segment.base
    if np.bitwise_or.reduce(offset) & 15:
        return False
    if offset.min() < 0 or offset.max() > segment.size - 16:
        return False
    copies = g.copy_offset(segment, who) if segment.stride else None
    place = offset if copies is None else offset + copies
    index = place >> 4
    if segment.written is not None:
        marks = segment.written_view(8)[: segment.raw.size >> 4 << 1].reshape(-1, 2)
        if np.bitwise_and.reduce(marks.take(index, axis=0), axis=None) != -1:
            return False
    if g.shadow is not None:
        chosen = g.shape.lane < 8 * p.number if p.number < 4 else None
        for read, address in zip(p.reads, addresses, strict=True):
            race_checks.check_read(g.shadow, g, read, address - segment.base, chosen)
    elif g.races is not None:
        g.races.record_read(g, p.reads[0], segment, place, who)
    got = segment.view(_ROW).take(index).view(_U16)
    matrices = got.reshape(loads, -1, p.number, 8, 8)
    if p.turned:
        matrices = np.ascontiguousarray(matrices.swapaxes(3, 4))
    each = registers.itemsize
    parts = matrices.reshape(loads, -1, p.number, WARP_SIZE, 2).view(f"u{each}")
    into = registers[p.rows]
    moved = parts.transpose(0, 2, 4, 1, 3).reshape(into.shape)
    registers[p.rows] = moved.view(registers.dtype)
    _clean(clean, p.writes)
    return True
