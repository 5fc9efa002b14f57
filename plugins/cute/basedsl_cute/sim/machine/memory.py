"""Memory as segments: the allocation table of a launch, and a block's shared and local memory.

Global pointers are host addresses. Shared pointers are small offsets; as generic pointers they lie
in a window far above any host address, where local pointers always are.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from basedsl_cute.hardware.targets import SYSTEM_SMEM

SHARED_BASE = SYSTEM_SMEM
"""The first address of shared memory: 0 is never valid, as on sm_90 (1 KB is the system's)."""

CLUSTER_SHIFT = 40
"""An address in the shared memory of block r of the cluster has r + 1 in the bits from here on."""

SHARED_WINDOW = 1 << 60
LOCAL_WINDOW = 1 << 61
LOCAL_BASE = LOCAL_WINDOW + 16

NO_ARGUMENT = (
    "an array whose address a kernel reads from memory is not an argument: "
    "`with basedsl_cute.sim.reachable(array, ...):` around the call"
)
"""The hint for an address that belongs to no argument."""

WRITTEN = 0xFF  # the mark of each byte of shared memory that was written
NEVER_WRITTEN = 0xFF  # each byte of fresh shared memory: NaN for every float type


class Segment:
    """A range of `size` bytes from address `base`; `name` is for messages, `kind` is "global",
    "shared" or "local". `raw` holds the bytes, uint8, one copy after another if several blocks or
    threads have their own: then `stride` bytes lie between the beginnings of copies.

    `written` shadows `raw` with 255 for each byte that was written; it is None if that is not
    checked. `keepalive` owns the bytes.
    """

    def __init__(
        self,
        base: int,
        raw: Any,
        name: str,
        writable: bool = True,
        size: int | None = None,
        stride: int = 0,
        keepalive: object = None,
        kind: str = "global",
    ) -> None:
        self.base = base
        self.raw = raw
        self.name = name
        self.writable = writable
        self.size = raw.size if size is None else size
        self.stride = stride
        self.keepalive = keepalive
        self.kind = kind
        self.written: Any = None
        self.is_settled = False  # writes were noted until every byte was written
        self._views: dict[Any, Any] = {}
        self._written_views: dict[int, Any] = {}

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.base + self.size

    def view(self, dtype: Any) -> Any:
        """All of `raw` as elements of `dtype`; the tail that fills no element is left out."""
        found = self._views.get(dtype)
        if found is None:
            count = self.raw.size // dtype.itemsize
            found = self.raw[: count * dtype.itemsize].view(dtype)
            self._views[dtype] = found
        return found

    def written_view(self, itemsize: int) -> Any:
        """`written` as signed integers of `itemsize` bytes: -1 where all bytes were written."""
        found = self._written_views.get(itemsize)
        if found is None:
            count = self.raw.size // itemsize
            found = self.written[: count * itemsize].view(f"i{itemsize}")
            self._written_views[itemsize] = found
        return found

    def track_writes(self) -> None:
        """Note from now on which bytes are written."""
        self.written = np.zeros(self.raw.size, np.uint8)
        self.is_settled = False
        self._written_views.clear()

    def settle_writes(self) -> None:
        """Stop noting writes once every byte was written."""
        if self.written is not None:
            copies = self.written.reshape(-1, self.stride) if self.stride else self.written
            marks = copies[..., : self.size]
            if marks.all() and (marks == WRITTEN).all():
                self.written = None
                self.is_settled = True

    def resume_writes(self) -> None:
        """Note writes again where that stopped because every byte was written."""
        if self.is_settled:
            self.track_writes()
            self.written.fill(WRITTEN)

    def __repr__(self) -> str:
        return f"Segment({self.name!r}, {self.base:#x}, {self.size} bytes)"


class Memory:
    """The allocation table of a launch: the segments, by address, that a kernel may touch through
    global pointers.
    """

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self.launches: list[Any] = []  # what those before may have written, for dependent ones

    def add(
        self,
        address: int,
        nbytes: int,
        name: str = "",
        writable: bool = True,
        keepalive: object = None,
    ) -> Segment:
        """Allow access to `nbytes` bytes from the host address `address`; `keepalive` owns them.

        Error messages call them `name`, the name of the argument. Segments may overlap: the same
        array passed twice. A kernel that writes to one that is not `writable` fails.
        """
        if nbytes:
            buffer: Any = (ctypes.c_uint8 * nbytes).from_address(address)
            raw = np.frombuffer(buffer, np.uint8)
        else:
            raw = np.zeros(0, np.uint8)
        return self.insert(Segment(address, raw, name, writable, keepalive=keepalive))

    def add_array(self, array: Any, name: str = "", writable: bool = True) -> int:
        """Allow access to a NumPy array's bytes; returns its address.

        An array with holes or negative strides is covered from its lowest to its highest byte.
        """
        start = int(array.ctypes.data)
        low, high = start, start + array.itemsize if array.size else start
        for extent, stride in zip(array.shape, array.strides, strict=True):
            if array.size:
                low += min((extent - 1) * stride, 0)
                high += max((extent - 1) * stride, 0)
        self.add(low, high - low, name, writable, keepalive=array)
        return start

    def insert(self, segment: Segment) -> Segment:
        """Allow access to a segment; returns it."""
        i = bisect.bisect_right(self._bases, segment.base)
        self._bases.insert(i, segment.base)
        self._segments.insert(i, segment)
        return segment

    def copy(self) -> Memory:
        """A new table with the same segments, to which a launch adds its own."""
        other = Memory()
        other._segments = list(self._segments)
        other._bases = list(self._bases)
        other.launches = self.launches
        return other

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def containing(self, address: int) -> list[Segment]:
        """All segments that hold `address`, the one that reaches furthest first."""
        found = [s for s in self._segments if s.base <= address < max(s.end, s.base + 1)]
        return sorted(found, key=lambda s: (-s.end, s.base))

    def find(self, address: int) -> Segment | None:
        """The segment that holds `address`, of several the last one; None if none does."""
        i = bisect.bisect_right(self._bases, address) - 1
        if i >= 0 and address < self._segments[i].end:
            return self._segments[i]
        found = self.containing(address)
        return found[0] if found else None

    def nearest(self, address: int) -> Segment | None:
        """The segment whose bytes are closest to `address`; None in an empty table."""
        return min(
            self._segments,
            key=lambda s: max(s.base - address, address - s.end + 1, 0),
            default=None,
        )


_reachable = threading.local()


@contextlib.contextmanager
def reachable(*arrays: Any) -> Iterator[None]:
    """Let kernels that this thread starts inside touch these NumPy arrays, whose addresses they get
    from memory and not as arguments.
    """
    outer = reachable_arrays()
    _reachable.arrays = (*outer, *arrays)
    try:
        yield
    finally:
        _reachable.arrays = outer


def reachable_arrays() -> tuple[Any, ...]:
    """The arrays that `reachable` names in this thread."""
    arrays: tuple[Any, ...] = getattr(_reachable, "arrays", ())
    return arrays


_NO_BYTES = np.zeros(0, np.uint8)


def private_segment(
    base: int, size: int, copies: int, name: str, kind: str, track: bool
) -> Segment:
    """A segment of `copies` times `size` fresh bytes: shared memory of blocks, or local memory of
    threads. `track` notes which bytes are written.
    """
    stride = -(-max(size, 1) // 1024) * 1024 if kind == "shared" else -(-size // 16) * 16
    stride = max(stride, 16)
    raw = np.full(stride * copies, NEVER_WRITTEN, np.uint8) if size else _NO_BYTES
    segment = Segment(base, raw, name, size=size, stride=stride, kind=kind)
    if track:
        segment.track_writes()
    return segment


def distinct(x: Any) -> Any:
    """The different integers in an array, sorted, as `np.unique` gives them: sooner where they are
    close together.
    """
    low = int(x.min())
    span = int(x.max()) - low + 1
    if span > 8 * x.size:
        return np.unique(x)
    found = np.zeros(span, np.bool_)
    found[x.ravel() - low] = True
    return np.flatnonzero(found) + low
