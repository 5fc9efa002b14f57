"""A group: the lanes that one run of the generated function executes together.

A group is one warp (a coroutine, so that warps can wait for each other), one block, or many blocks
(in lock step). Its arrays have one entry per lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.sim.errors import ArithmeticTrapError, AssertionFailedError, DeadlockError, Thread
from basedsl_cute.sim.machine.async_copy import CopyQueue
from basedsl_cute.sim.machine.bulk_groups import BulkQueue
from basedsl_cute.sim.machine.memory import LOCAL_BASE, Segment, private_segment
from basedsl_cute.sim.machine.schedule import Wait, spin
from basedsl_cute.sim.machine.wgmma_queue import ProductQueue
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.launch import Launch
    from basedsl_cute.sim.machine.access import Access
    from basedsl_cute.sim.machine.block import Block
    from basedsl_cute.sim.machine.races import RaceDetector

Mask = Any


class Lanes:
    """What depends on the block's shape only: thread indices and warps of the lanes in a group.

    `first` and `count` choose threads of the block by linear index; `blocks` repeats them.
    """

    def __init__(self, block: tuple[int, int, int], first: int, count: int, blocks: int) -> None:
        linear = np.arange(first, first + count, dtype=np.int32)
        self.threads = count
        self.blocks = blocks
        self.size = count * blocks
        self.linear = np.tile(linear, blocks)
        x, y, _ = block
        self.tid = tuple(
            np.tile(part.astype(np.int32), blocks)
            for part in (linear % x, linear // x % y, linear // (x * y))
        )
        self.tid_index = tuple(part.astype(np.int64) for part in self.tid)
        self.lane = self.linear % WARP_SIZE
        self.warp = self.linear // WARP_SIZE
        self.block_number = np.repeat(np.arange(blocks), count)
        starts = np.arange(0, count, WARP_SIZE)
        self.warp_starts = (np.arange(blocks)[:, None] * count + starts).ravel()
        sizes = np.minimum(count - starts, WARP_SIZE)
        self.warp_sizes = np.tile(sizes, blocks)
        self.warp_start = np.repeat(self.warp_starts, self.warp_sizes)
        self.warp_size = np.repeat(self.warp_sizes, self.warp_sizes)


class Group:
    """Lanes with their registers' owner: what generated code calls `g`."""

    def __init__(self, launch: Launch, shape: Lanes, block: Block, first_warp: int) -> None:
        self.launch = launch
        self.shape = shape
        self.lanes = shape.size
        self.block = block
        self.first_warp = first_warp
        self.shared: Segment = block.shared
        self.memory = launch.memory
        self.roots = launch.roots
        self.aliases = launch.aliases
        self.recent: dict[Any, Segment] = launch.recent
        self.races: RaceDetector | None = block.races
        self.agent = block.rank * block.warps + first_warp  # this warp among the cluster's
        self.copies = CopyQueue(shape.size)
        self.bulk = BulkQueue(shape.size)
        self.products = ProductQueue()
        self.cluster_phase = 0  # how often this group has arrived at its cluster's barrier
        self.cluster_waits = 0  # and waited there
        self.block_dim = launch.block
        self.grid_dim = launch.grid
        self._local: Segment | None = None
        self._rows: dict[Any, Any] = {}
        self._shared_copies: Any = None
        self._local_copies: Any = None

    # Indices ---------------------------------------------------------------------------------

    @property
    def tid(self) -> Any:
        return self.shape.tid

    @property
    def tid_index(self) -> Any:
        return self.shape.tid_index

    def ctaid(self, axis: int) -> Any:
        """This axis of the block index: an int32, or one per lane when there are many blocks."""
        index = self.block.index[axis]
        if isinstance(index, np.ndarray):
            return index[self.shape.block_number]
        return np.int32(index)

    def cluster_rank(self) -> Any:
        """The block's rank in its cluster, x fastest."""
        x, y, z = (self.ctaid(axis) % np.int32(n) for axis, n in enumerate(self.launch.cluster))
        cx, cy, _ = self.launch.cluster
        return x + np.int32(cx) * (y + np.int32(cy) * z)

    def thread(self, lane: int) -> Thread:
        """Who lane `lane` is."""
        number = int(self.shape.block_number[lane])
        block = tuple(
            int(i[number]) if isinstance(i, np.ndarray) else int(i) for i in self.block.index
        )
        x, y, z = (int(part[lane]) for part in self.shape.tid)
        return Thread((x, y, z), block)  # type: ignore[arg-type]

    # Memory ----------------------------------------------------------------------------------

    @property
    def local(self) -> Segment:
        """Local memory: every thread has its own copy."""
        if self._local is None:
            size = self.launch.layout.local_size
            self._local = private_segment(
                LOCAL_BASE, size, self.lanes, "local memory", "local", False
            )
        return self._local

    def rows(self, a: Access) -> Any:
        """A register array as `(elements, lanes)` of the access's type."""
        array = a.register
        assert array is not None
        key = (array, a.dtype)
        found = self._rows.get(key)
        if found is None:
            store = self._rows.get((array, None))
            if store is None:
                count = array.size // array.itemsize
                # All bits set, as memory that was never written: NaN for every float type.
                store = np.full((count, self.lanes), -1, f"i{array.itemsize}")
                self._rows[array, None] = store
            found = self._rows[key] = store.view(a.dtype)
        return found

    def copy_offset(self, segment: Segment) -> Any:
        """Where each lane's copy of a private segment starts, or None when there is only one."""
        if segment.kind == "local":
            if self._local_copies is None:
                self._local_copies = np.arange(self.lanes) * segment.stride
            return self._local_copies
        if self.shape.blocks == 1:
            return None
        if self._shared_copies is None:
            self._shared_copies = self.shape.block_number * segment.stride
        return self._shared_copies

    def shared_variable(self, address: int) -> tuple[str, int, int]:
        """Name, address and size of the shared variable at or before `address`."""
        return self.launch.variable(address)

    # Checks ----------------------------------------------------------------------------------

    def check_divisor(self, divisor: Any, m: Mask, site: Site) -> None:
        zero: Any = np.broadcast_to(divisor == 0, (*np.shape(divisor)[:-1], self.lanes))
        zero = zero.reshape(-1, self.lanes).any(axis=0)
        if m is not None:
            zero = zero & m
        if zero.any():
            where = self.thread(int(zero.argmax()))
            raise ArithmeticTrapError("integer division by zero", site, where)

    def check_assert(self, holds: Any, m: Mask, message: str, site: Site) -> None:
        failed = np.broadcast_to(~holds, (self.lanes,))
        if m is not None:
            failed = failed & m
        if failed.any():
            where = self.thread(int(failed.argmax()))
            name, _, rest = (message or "").partition(": ")
            if name == "ZeroDivisionError":
                raise ArithmeticTrapError(rest, site, where)
            if name == "AssertionError":
                message = rest
            text = f"assertion failed: {message}" if message else "assertion failed"
            raise AssertionFailedError(text, site, where)

    def ticks(self) -> int:
        """A clock: it only promises to go forward."""
        self.launch.clock += 1
        return self.launch.clock

    def bad_step(self, step: Any, site: Site) -> None:
        number = int(np.min(step))
        raise ArithmeticTrapError(f"a loop's step is {number}: it must be at least 1", site)

    def endless(self, mask: Any, site: Site) -> None:
        lane = 0 if mask is None else int(np.argmax(mask))
        raise DeadlockError(
            "a loop without end: nothing in it changes what its condition reads",
            site,
            self.thread(lane),
            "a loop that waits for other threads reads with cute.arch.load(pointer, sem='acquire')",
        )

    def spin(self, site: Site) -> Wait:
        return spin(site)

    def print(self, text: str, lane: int) -> None:
        """Remember what lane `lane` prints; the launch writes it out in order."""
        number = int(self.shape.block_number[lane])
        warp = int(self.shape.warp[lane])
        self.launch.output.add(self.block.linear + number, self.block.epoch, warp, text)
