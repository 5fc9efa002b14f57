"""State of a simulated launch: the fields of launch, cluster, block and group, and no behaviour.

A group is the lanes that one call of the generated function runs in lock step: one warp (then the
call is a coroutine, so that warps can wait for each other), one block, or many blocks. Its arrays
have one entry per lane, `(lanes,)`. The other modules of this folder act on these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.device.tensor_map import TensorMap
from basedsl_cute.hardware.targets import MAX_REGISTERS_PER_THREAD, REGISTERS_PER_SM, WARP_SIZE
from basedsl_cute.hardware.tensor_memory import TMEM_COLUMNS, TMEM_LANES
from basedsl_cute.sim.affine import Affine
from basedsl_cute.sim.errors import Thread
from basedsl_cute.sim.machine.access import MemoryAccess, RegisterArray
from basedsl_cute.sim.machine.lanes import Lanes
from basedsl_cute.sim.machine.memory import LOCAL_BASE, Memory, Segment, private_segment
from basedsl_cute.sim.machine.memory_map import MemoryMap
from basedsl_cute.sim.machine.output import KernelOutput
from basedsl_cute.sim.machine.shadow_memory import ShadowMemory
from basedsl_cute.sim.machine.vector_clock import Stamp, VectorClocks
from basedsl_cute.sim.machine_model import Machine
from basedsl_cute.sim.options import SimOptions
from basedsl_cute.sim.site import Site

_ADDRESS = np.dtype(np.int64)

Mask = Any
"""Lanes that an operation acts on: None for all of them, or an array of booleans, `(lanes,)`."""


class SimLaunch:
    """One launch. `grid`, `block` and `cluster` are extents in x, y, z; sizes are in bytes.

    `pointers` has the address passed for each kernel argument that is a pointer, by number: `roots`
    and `aliases` are the segment there, and all the segments there, which may overlap.
    """

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        memory_map: MemoryMap,
        dynamic_smem: int,
        memory: Memory,
        pointers: dict[int, int],
        options: SimOptions,
        machine: Machine,
        cluster: tuple[int, int, int] = (1, 1, 1),
        cooperative: bool = False,
        preferred: tuple[int, int, int] | None = None,
    ) -> None:
        self.machine = machine
        self.grid = grid
        self.cooperative = cooperative
        self.preferred = preferred  # the shape of some clusters, larger than `cluster`
        self.cluster = cluster
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.blocks = grid[0] * grid[1] * grid[2]  # that run: an observer may want the first alone
        self.memory_map = memory_map
        self.dynamic_smem = dynamic_smem
        self.shared_size = memory_map.shared_size(dynamic_smem)
        self.shared_span = memory_map.shared_span(dynamic_smem)
        self.memory = memory.copy()
        memory_map.add_variables(self.memory)
        self.options = options
        self.output = KernelOutput()
        self.waited = False  # for the grid before: griddepcontrol.wait
        self.guards: list[Any] = []  # of memory that something else may still write
        self.clock = 0
        self.unstarted = UnstartedClusters(iter(()), 0)
        seed = options.schedule_seed
        self.chance = Random(seed) if seed else None  # of the schedule
        self.warned: set[Any] = set()  # places of which a check has warned
        self.spoiled: dict[Segment, Any] = {}  # where the poisoned values stored there come from
        self.asynchronous = False  # if other units than threads use shared memory
        self.races: Any = None  # the RaceChecker, if races are checked
        self.member: Any = None  # the rank that launched it, where several are simulated
        self.stores = 0  # made so far: polling loops watch them
        self.recent: dict[MemoryAccess, Segment] = {}  # where an access went last
        self.roots: dict[int, Segment | None] = {}
        self.aliases: dict[int, list[Segment]] = {}
        for number, address in pointers.items():
            found = self.memory.containing(address)
            self.aliases[number] = found
            self.roots[number] = found[0] if found else None


class UnstartedClusters:
    """The clusters of a grid that have not started, `count` of them, in the order of the grid: the
    indices of their blocks by rank.
    """

    def __init__(self, members: Iterator[list[tuple[int, int, int]]], count: int) -> None:
        self.members = members
        self.count = count

    def start(self) -> list[tuple[int, int, int]] | None:
        """The next cluster; None if all have started."""
        found = next(self.members, None)
        self.count -= found is not None
        return found

    def cancel(self) -> tuple[int, int, int] | None:
        """The first block of the next cluster, which will not start; None if all have started."""
        found = self.start()
        return None if found is None else found[0]


@dataclass(slots=True, eq=False, repr=False)
class Cluster:
    """The blocks of a cluster in the order of their ranks, with `warps` warps in all of them.

    It may cancel the launch of `cancelable` more clusters; `refused` is where it was first told
    that it may not.
    """

    blocks: list[Block]
    warps: int
    cancelable: int = 0
    refused: Site | None = None
    arrived: int = 0  # warps, in this phase of the cluster's barrier
    phase: int = 0  # of the barrier: how often it has completed
    shape: tuple[int, int, int] = (1, 1, 1)  # extents in x, y, z


@dataclass(slots=True, eq=False, repr=False)
class BlockBarrier:
    """One of a block's 16 barriers. `expected` and `arrived` count threads in whole warps;
    `generation` counts how often the barrier has completed.
    """

    number: int
    expected: int = 0
    arrived: int = 0
    generation: int = 0
    floor: int = 0  # of the last generation: the accesses of the block up to this event are over
    early: int = -1  # the event at which the first warp arrived that did not wait
    sites: list[tuple[Group, Site]] = field(default_factory=list)
    votes: list[Any] = field(default_factory=list)
    outcome: list[Any] = field(default_factory=list)  # the votes of the last generation


@dataclass(slots=True, eq=False, repr=False)
class MBarrier:
    """An mbarrier object. `count` is the arrivals of a phase, `pending` those still to come,
    `transactions` the bytes still to come, and `phase` the number of the current phase.
    """

    count: int
    pending: int
    site: Site  # where it was initialised
    transactions: int = 0
    phase: int = 0
    arrived: dict[Site, int] = field(default_factory=dict)  # in this phase, and where

    @property
    def is_needed(self) -> bool:
        """True if nobody has used it yet, or if some arrivals of a phase are still to come."""
        return self.phase == 0 or self.pending != self.count

    def __str__(self) -> str:
        """The arrivals and bytes still to come before the phase ends, as text."""
        here = " and ".join(f"{number} at {site.line}" for site, number in self.arrived.items())
        text = f"{self.pending} of {self.count} arrivals still to come"
        text += f"; there were {here}" if here else ""
        if self.transactions > 0:
            text += f"; {self.transactions} bytes still to come"
        if self.transactions < 0:
            text += f"; {-self.transactions} bytes came that nobody expects"
        return f"{text}; initialised at {self.site.line}"


@dataclass(slots=True, eq=False, repr=False)
class PendingTmemWrite:
    """The words of a block's tensor memory that a tcgen05.mma, cp or shift in flight writes."""

    mask: Any  # (lanes, columns)
    columns: range
    site: Site


class TensorQueue:
    """The asynchronous tcgen05 instructions of one thread: how many it has `issued`, and calls that
    execute those that are not complete, in order. `stamp` is the last read of shared memory.
    """

    def __init__(self) -> None:
        self.issued = 0
        self.stamp: Stamp | None = None
        self.pending: list[Callable[[], None]] = []


class TmemColumns(NamedTuple):
    """Columns that a tcgen05.alloc gave to a group of 1 or 2 `blocks`."""

    columns: int
    blocks: int
    site: Site


class PendingTmemStore(NamedTuple):
    """A tcgen05.st that a warp has issued: words for lanes and columns, all `(words, 32)`."""

    lanes: Any
    columns: Any
    words: Any
    site: Site


class TensorMemory:
    """The tensor memory of a block: words of 32 bits by lane and column, and which are written.

    `allocated` has allocations by their first column; `requests` those that were asked for in the
    whole run. `group` is the number of blocks that the block's tcgen05 instructions work on, and
    where that was first said.
    """

    def __init__(self) -> None:
        self.words = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.uint32)
        self.written = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.bool_)
        self.allocated: dict[int, TmemColumns] = {}
        self.requests: list[TmemColumns] = []
        self.relinquished: Site | None = None
        self.pending: list[PendingTmemWrite] = []
        self.shadow: Any = None  # a TensorShadow, if races are checked
        self.owners: Any = None  # the TensorOwners, once something is written
        self.group: tuple[int, Site] | None = None


class RegisterPool:
    """Registers per thread that each of a block's `warps` holds, and the block's total.

    A block keeps the registers that it was launched with: for each thread an equal share of those
    of a multiprocessor, in multiples of 8, and at most as many as one thread can have.
    """

    def __init__(self, warps: int) -> None:
        each = REGISTERS_PER_SM // (WARP_SIZE * warps)
        most = MAX_REGISTERS_PER_THREAD
        self.launched = each // 8 * 8 if each <= most else most
        self.total = self.launched * warps
        self.held = [self.launched] * warps


class LoadedBox(NamedTuple):
    """A box that TMA loaded: the offsets of its bytes in shared memory, the bytes, the swizzle of
    its tensor map (0 none, 1 to 3 of 32 to 128 bytes, 4 of 128 by 32 bytes), and the bytes of a row
    of its contiguous mode there.
    """

    place: Any
    data: Any
    swizzle: int
    row_bytes: int


class Block:
    """One block; in lock step a box of them, of which `corner` is the first one's index. `linear`
    is its number in the grid, x fastest, and `rank` its number in the cluster.
    """

    def __init__(
        self,
        corner: tuple[int, int, int],
        linear: int,
        threads: int,
        warps: int,
        shared: Segment,
        shadow: ShadowMemory | None = None,
        rank: int = 0,
    ) -> None:
        self.corner = corner
        self.linear = linear
        self.rank = rank
        self.threads = threads
        self.warps = warps
        self.shared = shared
        self.shadow = shadow  # of `shared`, if races with asynchronous units are checked
        self.order: VectorClocks | None = None  # of the cluster's warps, if races are checked
        self.epoch = 0  # how many barriers of all threads it has passed
        self.barriers: dict[int, BlockBarrier] = {}
        self.mbarriers: dict[int, MBarrier] = {}  # by shared address
        self.tensor_maps: dict[int, TensorMap] = {}  # by address, as the block last acquired them
        # By offset in shared memory: what TMA loaded there last, and in which swizzle.
        self.boxes: dict[int, LoadedBox] = {}
        self.cluster = Cluster([self], self.warps)
        self._tensor_memory: TensorMemory | None = None
        # By the address of an mbarrier: calls that let something arrive which counts there.
        self.in_flight: dict[int, list[Callable[[], None]]] = {}

    @cached_property
    def registers(self) -> RegisterPool:
        """The registers that its warps hold, of an NVIDIA GPU."""
        return RegisterPool(self.warps)

    @property
    def tensor_memory(self) -> TensorMemory:
        """The block's tensor memory, made when first asked for."""
        if self._tensor_memory is None:
            self._tensor_memory = TensorMemory()
        return self._tensor_memory

    @property
    def has_tensor_memory(self) -> bool:
        """True if an instruction has used tensor memory."""
        return self._tensor_memory is not None


@dataclass(slots=True, eq=False, repr=False)
class PendingCopy:
    """A cp.async that lanes have issued. Its arrays have an entry for each of `lanes`."""

    read: MemoryAccess
    write: MemoryAccess
    to: Any
    source: Any
    sizes: Any  # bytes to read, the rest is zero; None when all
    lanes: Any
    number: Any  # the commit group of each lane
    serial: int
    stamp: Stamp | None


class CopyQueue:
    """The cp.async copies that the lanes of a group have issued and not waited for."""

    def __init__(self, lanes: int) -> None:
        self.committed = np.zeros(lanes, np.int64)  # commit groups closed
        self.pending: list[PendingCopy] = []
        self.issued = 0


@dataclass(slots=True, eq=False, repr=False)
class PendingStore:
    """A bulk store that a lane has issued: `read` gives its bytes, `write` puts them in place."""

    lane: int
    number: int  # the lane's bulk group
    read: Callable[[], Any]
    write: Callable[[Any], None]
    site: Site
    stamp: Stamp | None
    data: Any = None  # the bytes, once they are read
    guard: Any = None  # of what it writes


class BulkQueue:
    """The bulk stores that the lanes of a group have issued and not waited for."""

    def __init__(self, lanes: int) -> None:
        self.committed = np.zeros(lanes, np.int64)  # bulk groups closed
        self.pending: list[PendingStore] = []


class TouchedRows(NamedTuple):
    """Rows of a register array that ordinary instructions used last at `site`."""

    first: int
    end: int
    site: Site


class PendingRegisters(NamedTuple):
    """Rows `first` to `end` of a register array that a wgmma in flight uses."""

    array: RegisterArray
    first: int
    end: int
    is_accumulator: bool
    site: Site


@dataclass(slots=True, eq=False, repr=False)
class PendingWgmma:
    """A wgmma that a warp has issued: `perform` executes it."""

    number: int  # its wgmma group
    perform: Callable[[], None]
    registers: tuple[PendingRegisters, ...]
    stamps: tuple[Stamp, ...]


class WgmmaQueue:
    """The wgmma that one warp has issued and not waited for; `issued` are the places of all."""

    def __init__(self) -> None:
        self.issued: list[Site] = []
        self.registers: list[PendingRegisters] = []
        self.committed = 0  # wgmma groups closed
        self.pending: list[PendingWgmma] = []
        self.fenced = False
        self.performing = False
        # Since the last fence, the rows of each register array that were read, and written.
        self.touched: tuple[dict[RegisterArray, TouchedRows], dict[RegisterArray, TouchedRows]]
        self.touched = ({}, {})


class Group:
    """The lanes that run in lock step, with their registers: `g` in generated code."""

    def __init__(self, launch: SimLaunch, shape: Lanes, block: Block, first_warp: int) -> None:
        self.launch = launch
        self.shape = shape
        self.lanes = shape.size
        self.everybody = shape.grid.everybody  # a mask of all lanes, known by its identity
        self.block = block
        self.first_warp = first_warp  # its number in the block
        self.shared = block.shared
        self.memory = launch.memory
        self.roots = launch.roots
        self.aliases = launch.aliases
        self.recent = launch.recent
        self.max_steps = launch.options.max_steps
        self.shadow = block.shadow
        self.races = launch.races
        self.known: Any = None  # its ThreadOrder, if races are checked
        self.unfenced: list[Any] = []  # places in shared memory that it has read without acquiring
        self.polled: int | None = None  # the address of the last ordered read, of several ranks
        self.agent = block.rank * block.warps + first_warp  # this warp among the cluster's
        self.tmem_stores: list[PendingTmemStore] = []
        self.tensor_queues: dict[int, TensorQueue] = {}  # by lane
        self.cluster_phase = 0  # how often this group has arrived at its cluster's barrier
        self.cluster_waits = 0  # and waited there
        self.block_dim = launch.block
        self.grid_dim = launch.grid
        self.register_rows: dict[Any, Any] = {}  # of register arrays, by array and dtype
        self.register_marks: dict[RegisterArray, Any] = {}  # of what was written in them
        self.poison: Any = None  # of what the last load has read
        self._affine: dict[tuple[str, int], Affine] = {}
        self._local: Segment | None = None
        self._shared_copies: Any = None
        self._local_copies: Any = None

    @property
    def tid(self) -> tuple[Any, Any, Any]:
        """The x, y and z of each lane's thread, int32."""
        return self.shape.tid

    @property
    def tid_index(self) -> tuple[Any, Any, Any]:
        """`tid` as int64."""
        return self.shape.tid_index

    @cached_property
    def wgmmas(self) -> WgmmaQueue:
        """The wgmma that the warp has issued."""
        return WgmmaQueue()

    @cached_property
    def copies(self) -> CopyQueue:
        """The cp.async copies of the lanes."""
        return CopyQueue(self.lanes)

    @cached_property
    def bulk(self) -> BulkQueue:
        """The bulk stores of the lanes."""
        return BulkQueue(self.lanes)

    def ctaid(self, axis: int) -> Any:
        """The block index along `axis`: an int32, or one per lane when there are many blocks."""
        first = np.int32(self.block.corner[axis])
        if self.shape.blocks == 1:
            return first
        return (self.shape.block_places[axis] + first)[self.shape.block_number]

    # Of groups of whole blocks, values as coefficients; each is made once, and keeps what is made
    # of it.

    def affine_tid(self, axis: int) -> Affine:
        """The thread index along `axis`."""
        return self._held(("thread", axis), 0)

    def affine_ctaid(self, axis: int) -> Affine:
        """The block index along `axis`."""
        return self._held(("block", axis), self.block.corner[axis])

    def _held(self, key: tuple[str, int], base: int) -> Affine:
        found = self._affine.get(key)
        if found is None:
            found = self._affine[key] = self.shape.affine(*key, base)
        return found

    def affine_laneid(self) -> Any:
        """The number of each lane in its warp."""
        found = self.shape.affine_linear.divided(self.shape.of_warp)
        return self.shape.lane if found is None else found[1]

    def everywhere(self, address: Any) -> Affine:
        """An address that all lanes share."""
        key = "address", int(address)
        found = self._affine.get(key)
        if found is None:
            zero = (0,) * len(self.shape.grid.extents)
            found = self._affine[key] = Affine(self.shape.grid, key[1], zero, _ADDRESS)
        return found

    def cluster_rank(self) -> Any:
        """The block's rank in its cluster, x fastest: an int32, or one per lane."""
        shape = self.block.cluster.shape
        x, y, z = (self.ctaid(axis) % np.int32(n) for axis, n in enumerate(shape))
        cx, cy, _ = shape
        return x + np.int32(cx) * (y + np.int32(cy) * z)

    def thread(self, lane: int) -> Thread:
        """The thread that runs in `lane`."""
        number = int(self.shape.block_number[lane])
        pairs = zip(self.block.corner, self.shape.block_places, strict=True)
        block = tuple([first + int(places[number]) for first, places in pairs])
        x, y, z = (int(part[lane]) for part in self.shape.tid)
        return Thread((x, y, z), block)  # type: ignore[arg-type]

    def shared_variable(self, address: int) -> tuple[str, int, int]:
        """Name, address and size in bytes of the shared variable at or before `address`."""
        return self.launch.memory_map.variable_at(address, self.launch.dynamic_smem)

    @property
    def local(self) -> Segment:
        """Local memory, of which every thread has its own copy; made when first asked for."""
        if self._local is None:
            size = self.launch.memory_map.local_size
            track = self.launch.options.level("uninitialized") != "off"
            self._local = private_segment(
                LOCAL_BASE, size, self.lanes, "local memory", "local", track
            )
        return self._local

    def copy_offset(self, segment: Segment, lanes: Any = None) -> Any:
        """Byte offset of each lane's copy of a private segment, or of those of some `lanes`; None
        when there is only one.
        """
        if lanes is not None:
            if segment.kind == "local":
                return lanes * segment.stride
            return (
                None
                if self.shape.blocks == 1
                else (self.shape.block_number[lanes] * segment.stride)
            )
        if segment.kind == "local":
            if self._local_copies is None:
                self._local_copies = np.arange(self.lanes) * segment.stride
            return self._local_copies
        if self.shape.blocks == 1:
            return None
        if self._shared_copies is None:
            self._shared_copies = self.shape.block_number * segment.stride
        return self._shared_copies

    def ticks(self) -> int:
        """The next tick of a clock that only promises to go forward."""
        self.launch.clock += 1
        return self.launch.clock
