"""Local arrays as registers, where `register_uses` finds that they can be.

Such an array is kept as rows of elements with one entry per lane, so that an element at an index
that all lanes share is one row. Other allocas lie in each thread's local memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.errors import MemoryAccessError

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.access import Access
    from basedsl_cute.sim.machine.group import Group


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegisterArray:
    """`size` bytes from address `base`, as elements of `itemsize` bytes. `multiplied` says that
    wgmma reads or writes it.
    """

    base: int
    size: int
    itemsize: int
    multiplied: bool = False
    name: str = "a local array"


def load_register(g: Group, a: Access, address: Any, m: Any) -> Any:
    """What each lane has at `address`, which is one for all lanes or one per lane."""
    rows = g.rows(a)
    index = _index(g, a, address, m)
    if a.register.multiplied:  # type: ignore[union-attr]
        _touch(g, a, index, False)
    if np.ndim(index) == 0:
        got = rows[index : index + a.count].copy() if a.shape else rows[index].copy()
    else:
        index = index + a.rows if a.shape else index
        got = rows[index, np.arange(g.lanes)]
    return got.reshape(*a.shape, -1) if len(a.shape) > 1 else got


def store_register(g: Group, a: Access, address: Any, value: Any, m: Any) -> None:
    """Set the element at `address` in the lanes of `m`."""
    rows = g.rows(a)
    index = _index(g, a, address, m)
    if a.register.multiplied:  # type: ignore[union-attr]
        _touch(g, a, index, True)
    if len(a.shape) > 1:
        value = value.reshape(a.count, value.shape[-1])
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


def _touch(g: Group, a: Access, index: Any, writes: bool) -> None:
    assert a.register is not None
    if np.ndim(index) == 0:
        first = int(index)
        end = first + (a.count if a.shape else 1)
    else:
        first, end = int(index.min()), int(index.max()) + (a.count if a.shape else 1)
    g.products.touch(g, a.register, first, end, writes, a.site)


def register_range(g: Group, a: Access, address: Any) -> tuple[int, int]:
    """The rows of a register array that an access at one address for all lanes means."""
    first = int(_index(g, a, int(np.ravel(address)[0]), None))
    return first, first + a.count


def _index(g: Group, a: Access, address: Any, m: Any) -> Any:
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
            f"{at // array.itemsize}) of {array.name}, which has {array.size} bytes "
            f"({array.size // array.itemsize} elements of {a.element})",
            a.site,
            g.thread(lane),
        )
    return offset >> (array.itemsize.bit_length() - 1)
