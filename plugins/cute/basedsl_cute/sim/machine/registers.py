"""Loads and stores of local arrays that are kept as registers (`register_uses` finds which).

Such an array is rows of elements with one entry per lane, `(elements, lanes)`, so that an element
at an index that all lanes share is one row. Other allocas lie in each thread's local memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MemoryAccessError, extent_note
from basedsl_cute.sim.machine import poison as poisons
from basedsl_cute.sim.machine import wgmma_queue
from basedsl_cute.sim.machine.access import MemoryAccess, RegisterArray
from basedsl_cute.sim.machine.poison import Origin, Poison
from basedsl_cute.sim.machine.state import Group, Mask


def load_register(g: Group, a: MemoryAccess, address: Any, m: Mask) -> Any:
    """The values at `address`, which is one for all lanes or one per lane: `(lanes,)`, or
    `(n, ..., lanes)` for a vector. Raises MemoryAccessError for an address outside of the array.
    """
    rows = register_rows(g, a)
    index = _index(g, a, address, m)
    if a.register.multiplied:  # type: ignore[union-attr]
        _touch(g, a, index, False)
    if np.ndim(index) == 0:
        got = rows[index : index + a.count].copy() if a.shape else rows[index].copy()
    else:
        index = index + a.rows if a.shape else index
        got = rows[index, np.arange(g.lanes)]
    if a.spreads:
        marks = g.register_marks.get(a.register)  # type: ignore[arg-type]
        if marks is not None:
            g.poison = marks.poison(g, a, index, m)
    return got.reshape(*a.shape, -1) if len(a.shape) > 1 else got


def store_register(g: Group, a: MemoryAccess, address: Any, value: Any, m: Mask) -> None:
    """Set the element or vector at `address` in the lanes of `m`. Raises MemoryAccessError."""
    rows = register_rows(g, a)
    index = _index(g, a, address, m)
    if a.register.multiplied:  # type: ignore[union-attr]
        _touch(g, a, index, True)
    if len(a.shape) > 1:
        value = value.reshape(a.count, value.shape[-1])
    marks = g.register_marks.get(a.register)  # type: ignore[arg-type]
    if marks is not None:
        marks.note(index, a.count if a.shape else 1, m)
    if np.ndim(index) == 0:
        target = rows[index : index + a.count] if a.shape else rows[index]
        np.copyto(target, value, where=True if m is None else m)
        return
    lanes = np.arange(g.lanes)
    index = index + a.rows if a.shape else index
    if m is not None:
        lanes, index = lanes[m], index[..., m]
        if value.ndim and value.shape[-1] == m.size:
            value = value[..., m]
    rows[index, lanes] = value


def spoil_register(g: Group, a: MemoryAccess, address: Any, poison: Poison, m: Mask) -> None:
    """Let what the lanes of `m` have just stored count as not written where it was poisoned."""
    marks = g.register_marks.get(a.register)  # type: ignore[arg-type]
    if marks is not None:
        mask = poisons.full(poison, (*a.shape, g.lanes)).reshape(-1, g.lanes)
        marks.spoil(_index(g, a, address, m), mask if m is None else mask & m, poison.origin)


class RegisterMarks:
    """The elements of a register array that were written: rows that all lanes have, in `clean`, and
    for the others the lanes, `(elements, lanes)`.
    """

    def __init__(self, array: RegisterArray, count: int, lanes: int) -> None:
        self.array = array
        self.clean = bytearray(count)
        self.written = np.zeros((count, lanes), np.bool_)
        self.spoiled: Origin | None = None

    def note(self, index: Any, count: int, m: Mask) -> None:
        """Note a store to `count` rows from `index`, one or one per lane, by the lanes of `m`."""
        if np.ndim(index) == 0:
            first = int(index)
            if self.clean.find(0, first, first + count) < 0:
                return
            if m is None:
                self.clean[first : first + count] = b"\1" * count
                return
            rows = self.written[first : first + count]
            rows |= m
            if rows.all():
                self.clean[first : first + count] = b"\1" * count
        elif 0 in self.clean:
            lanes = np.arange(self.written.shape[1]) if m is None else np.flatnonzero(m)
            for row in range(count):
                self.written[index[..., lanes].reshape(-1, lanes.size)[0] + row, lanes] = True

    def spoil(self, index: Any, mask: Any, origin: Origin) -> None:
        """Unmark the elements of rows from `index` in the lanes of which `mask` holds."""
        lanes = np.arange(mask.shape[1])
        first = np.asarray(index).reshape(-1, index.shape[-1])[0] if np.ndim(index) else index
        for row, chosen in enumerate(mask):
            at = np.broadcast_to(first + row, lanes.shape)[chosen]
            for one in np.unique(at).tolist():
                if self.clean[one]:
                    self.clean[one] = 0
                    self.written[one] = True
            self.written[at, lanes[chosen]] = False
        self.spoiled = origin

    def poison(self, g: Group, a: MemoryAccess, index: Any, m: Mask) -> Poison | None:
        """The poison of a read of rows from `index`; `index` has a row for each element of a vector
        if it differs between lanes.
        """
        count = a.count if a.shape else 1
        if np.ndim(index) == 0:
            first = int(index)
            if self.clean.find(0, first, first + count) < 0:
                return None
            clean = np.frombuffer(self.clean, np.uint8, count, first) != 0
            mask = ~(self.written[first : first + count] | clean[:, None])
        else:
            if 0 not in self.clean:
                return None
            rows = index.reshape(count, -1)
            clean = np.frombuffer(self.clean, np.uint8) != 0
            mask = ~(self.written[rows, np.arange(g.lanes)] | clean[rows])
        if m is not None:
            mask = mask & m
        if not mask.any():
            return None
        row, lane = (int(i) for i in np.argwhere(mask)[0])
        at = int(np.asarray(index).reshape(-1)[0 if np.ndim(index) == 0 else lane])
        mask = mask.reshape(*a.shape, -1) if a.shape else mask[0]
        if self.spoiled is not None:
            return Poison(mask, self.spoiled)
        array = self.array
        element = at + row
        origin = Origin(
            f"read of registers that nobody has written: element {element} of `{array.name}`",
            a.site,
            g.thread(lane),
            "set every element before it is read: fill(0), or a loop over all of it",
            (extent_note(f"`{array.name}`", array.size, array.itemsize, a.element),),
        )
        return poisons.moved(mask, Poison(mask, origin))


# Accesses of rows that are known before the kernel runs: generated code makes them itself ---------


def known_rows(array: RegisterArray, address: int, nbytes: int) -> tuple[int, int] | None:
    """The first row and the end of an access; None for one that is not in the array."""
    offset = address - array.base
    if not 0 <= offset <= array.size - nbytes or offset % array.itemsize:
        return None
    return offset // array.itemsize, (offset + nbytes) // array.itemsize


def clean_rows(g: Group, a: MemoryAccess) -> bytearray:
    """The bytes that are 1 for each row of an array which all lanes have written."""
    marks = g.register_marks.get(a.register)  # type: ignore[arg-type]
    return bytearray(b"\1") * len(register_rows(g, a)) if marks is None else marks.clean


def unwritten(g: Group, a: MemoryAccess, row: int, m: Mask) -> Poison | None:
    """The poison of a read of rows of which not all lanes have written all."""
    assert a.register is not None
    marks: RegisterMarks = g.register_marks[a.register]
    return marks.poison(g, a, row, m)


def register_range(g: Group, a: MemoryAccess, address: Any) -> tuple[int, int]:
    """The first row and the end of an access at one address for all lanes."""
    first = int(_index(g, a, int(np.ravel(address)[0]), None))
    return first, first + a.count


def register_rows(g: Group, a: MemoryAccess) -> Any:
    """The array of an access as `(elements, lanes)` of its type."""
    array = a.register
    assert array is not None
    key = (array, a.dtype)
    found = g.register_rows.get(key)
    if found is None:
        store = g.register_rows.get((array, None))
        if store is None:
            count = array.size // array.itemsize
            # All bits set, as memory that was never written: NaN for every float type.
            store = np.full((count, g.lanes), -1, f"i{array.itemsize}")
            if g.launch.options.level("uninitialized") != "off":
                g.register_marks[array] = RegisterMarks(array, count, g.lanes)
            g.register_rows[array, None] = store
        found = g.register_rows[key] = store.view(a.dtype)
    return found


def _touch(g: Group, a: MemoryAccess, index: Any, writes: bool) -> None:
    assert a.register is not None
    if np.ndim(index) == 0:
        first = int(index)
        end = first + (a.count if a.shape else 1)
    else:
        first, end = int(index.min()), int(index.max()) + (a.count if a.shape else 1)
    wgmma_queue.touch_registers(g, a.register, first, end, writes, a.site)


def _index(g: Group, a: MemoryAccess, address: Any, m: Mask) -> Any:
    """The row at `address`: an int, or one per lane."""
    array = a.register
    assert array is not None
    offset: Any
    if np.ndim(address) == 0:
        offset = int(address) - array.base
        bad = not 0 <= offset <= array.size - a.nbytes or offset & (array.itemsize - 1)
        lane = 0 if m is None else int(m.argmax())
    else:
        offset = address - array.base
        wrong = (offset < 0) | (offset > array.size - a.nbytes)
        wrong |= (offset & (array.itemsize - 1)) != 0
        if m is not None:
            wrong &= m
            offset = np.where(m, offset, 0)
        lane = int(wrong.argmax())
        bad = wrong[lane]
    if bad:
        at = int(np.broadcast_to(offset, (g.lanes,))[lane])
        raise MemoryAccessError(
            f"out-of-bounds {a.verb} of {a.nbytes} bytes at byte offset {at} (element "
            f"{at // array.itemsize}) of {array.name}",
            a.site,
            g.thread(lane),
            notes=(extent_note(array.name, array.size, array.itemsize, a.element),),
        )
    return offset >> (array.itemsize.bit_length() - 1)
