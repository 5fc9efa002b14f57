"""Replay: the events of counted blocks on one modelled multiprocessor, with the rates of a GPU.

Each warp goes through what it executed on the simulator: it waits for what an operation depends on
(`dependences`), takes issue slots of its partition and time of the units, which serve one after
another: pipes, shared memory, L2, memory, tensor cores, TMA. Barriers and mbarriers wait for the
arrivals that the simulation saw. L2 and memory are an equal share of the GPU's for each
multiprocessor that has blocks.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from basedsl_cute.hardware.occupancy import PARTITIONS
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.sim.profiling.counting import KernelRun
from basedsl_cute.sim.profiling.dependences import Dependences
from basedsl_cute.sim.profiling.operations import GLOBAL, ProfiledOperation
from basedsl_cute.sim.profiling.rates import Rates
from basedsl_cute.sim.profiling.transactions import SECTOR

_INTEGER = frozenset(["integer", "conversion", "float other", "branch"])
# The part of the operations on integers that ptxas leaves: it computes most addresses once.
LEFT_OF_INTEGERS = 0.5
UNITS = ("issue", "integer", "special", "shared", "l2", "memory", "tensor")


@dataclass(slots=True, eq=False)
class ReplayedChunk:
    """A chunk as the replay takes it: its first operation, and the cost of the others.

    Costs are cycles of a partition's issue slots and pipes; `chain` is the longest dependent chain
    of them, in cycles; `awaits` are producers of the first operation, and of the others.
    """

    first: ProfiledOperation
    name: str
    awaits: tuple[tuple[ProfiledOperation, ...], tuple[ProfiledOperation, ...]]
    slots: float
    integer: float
    special: float
    chain: float
    groups: int | None = None  # of a wait for copy or tensor groups
    long: list[ProfiledOperation] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Warp:
    """A warp on the multiprocessor: its events, where it is, and what it waits for later."""

    number: int
    block: int
    events: list[tuple[int, Any]]
    time: float
    at: int = 0
    halfway: bool = False  # the first operation of its chunk is done
    begun: float = 0.0  # when it came to its chunk
    ready: dict[ProfiledOperation, float] = field(default_factory=dict)
    copies: list[list[float]] = field(default_factory=lambda: [[]])
    stores: list[list[float]] = field(default_factory=lambda: [[]])
    products: list[float] = field(default_factory=list)
    group: float = 0.0  # when the wgmma of the open group end
    barriers: Counter[int] = field(default_factory=Counter)  # arrivals by the barrier's number


@dataclass(slots=True)
class Slice:
    """A piece of a timeline: a warp's or a unit's, from `start` on for `length` cycles."""

    block: int
    track: str
    name: str
    start: float
    length: float
    line: int = 0


@dataclass(slots=True)
class Replayed:
    """The outcome: `cycles` until the last block ended, and how long each unit was busy."""

    cycles: float
    busy: dict[str, float]
    waits: dict[str, float]
    slices: list[Slice]


class Recording:
    """Record of what the warps of simulated blocks did, for replays with any number of blocks."""

    def __init__(self, run: KernelRun, rates: Rates) -> None:
        assert run.events is not None and run.launch is not None
        self.run = run
        operations = {one.op: one for chunk in run.chunks for one in chunk.operations}
        dependences = Dependences(run.record, operations)
        self.steps = [_step(chunk.operations, dependences, rates) for chunk in run.chunks]
        self.blocks = _blocks(run)
        self.warps = -(-run.launch.threads // WARP_SIZE)
        self.arrivals: dict[Any, int] = defaultdict(int)  # of each phase of an mbarrier


def _step(
    operations: list[ProfiledOperation], dependences: Dependences, rates: Rates
) -> ReplayedChunk:
    first, *rest = operations
    waits: set[ProfiledOperation] = set()
    for one in rest:
        waits |= dependences.producers(one.op)
    ready: dict[Any, float] = {}
    chain = 0.0
    cost = {"slots": 0.0, "integer": 0.0, "special": 0.0}
    special = rates.special_latency
    for one in operations if first.memory is None else rest:
        latency = special if one.kind == "special function" else rates.arithmetic_latency
        if one.kind in ("integer", "branch"):
            latency = 0.0  # computed ahead
        began = max((ready.get(value, 0.0) for value in one.op.operands), default=0.0)
        for result in one.op.results:
            ready[result] = began + latency
        chain = max(chain, began + latency)
        if one.kind in ("tensor core",):
            continue
        count = one.count * (LEFT_OF_INTEGERS if one.kind == "integer" else 1)
        cost["slots"] += count / (rates.issue / PARTITIONS)
        if one.kind in _INTEGER:
            cost["integer"] += count / (rates.integer / PARTITIONS)
        elif one.kind == "special function":
            cost["special"] += one.count / (rates.special / PARTITIONS)
    span = first.site.span
    groups = None
    if (
        first.op.name.startswith("nvvm.")
        and "wait" in first.op.name
        and "mbar" not in first.op.name
    ):
        groups = first.op.integer("n", first.op.integer("group", 0))
    return ReplayedChunk(
        first, f"{span.line if span else '?'} {first.kind}",
        (tuple(dependences.producers(first.op)), tuple(waits)),
        cost["slots"], cost["integer"], cost["special"], chain, groups,
        [one for one in rest if one.kind in ("warp", "tensor core")],
    )  # fmt: skip


def _blocks(run: KernelRun) -> list[list[list[tuple[int, Any]]]]:
    """The events of each warp of each simulated block, in the order of the blocks."""
    assert run.events is not None and run.launch is not None
    warps = -(-run.launch.threads // WARP_SIZE)
    out: dict[int, list[list[tuple[int, Any]]]] = {}
    for group, events in run.events.items():
        count = group.shape.warp_starts.size
        lists: list[list[tuple[int, Any]]] = [[] for _ in range(count)]
        for event in events:
            active = range(count) if event.active is None else np.flatnonzero(event.active).tolist()
            by_warp = (
                isinstance(event.data, list)
                and event.data
                and isinstance(event.data[0], np.ndarray)
            )
            for w in active:
                data = tuple(int(part[w]) for part in event.data) if by_warp else event.data
                lists[w].append((event.chunk, data))
        for w, made in enumerate(lists):
            number = group.block.linear + w // warps
            here = out.setdefault(number, [[] for _ in range(warps)])
            here[group.first_warp + w % warps] = made
    return [out[number] for number in sorted(out)]


class Multiprocessor:
    """A multiprocessor that runs `count` blocks, `resident` at a time, from a recording."""

    def __init__(
        self, recording: Recording, rates: Rates, resident: int, count: int,
        sharing: int, cold: float, keeps: bool = False,
    ) -> None:  # fmt: skip
        self.recording, self.rates = recording, rates
        self.resident, self.left = resident, count
        self.cold = cold  # the part of the bytes that L2 does not have
        self.memory_rate = rates.memory / rates.clock / max(sharing, 1)
        self.l2_rate = min(rates.l2 * rates.processors / max(sharing, 1), 64.0)
        self.free = dict.fromkeys(UNITS, 0.0)
        self.partitions = [dict.fromkeys(("issue", "integer", "special", "tensor"), 0.0)
                           for _ in range(PARTITIONS)]  # fmt: skip
        self.busy: dict[str, float] = defaultdict(float)
        self.waits: dict[str, float] = defaultdict(float)
        self.slices: list[Slice] | None = [] if keeps else None
        self.heap: list[tuple[float, int, Warp]] = []
        self.arrived: dict[Any, list[Any]] = {}  # count, latest, waiting warps
        self.expected: dict[Any, int] = {}
        self.started = 0
        self.serial = 0
        self.running: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.end = 0.0

    def replay(self) -> Replayed:
        """Run all blocks. Raises RuntimeError if warps are left that wait."""
        for _ in range(min(self.resident, self.left)):
            self._start(0.0)
        while self.heap:
            time, _, warp = heapq.heappop(self.heap)
            warp.time = max(warp.time, time)
            self._advance(warp)
        waiting = [key for (_, key), found in self.arrived.items() if found[2]]
        if waiting:
            raise RuntimeError(f"warps wait for arrivals that were not recorded: {waiting[:4]}")
        for name in ("issue", "integer", "special", "tensor"):
            self.busy[name] /= PARTITIONS
        return Replayed(self.end, dict(self.busy), dict(self.waits), self.slices or [])

    def _start(self, time: float) -> None:
        """Start the next block."""
        pool = self.recording.blocks
        which = pool[self.started % len(pool)]
        number = self.started
        self.started += 1
        self.left -= 1
        begun = max(time, self.free.get("start", 0.0)) + self.rates.block_start
        self.free["start"] = begun
        self.running[number] = len(which)
        for w, events in enumerate(which):
            self._expect(number, events)
            self._push(Warp(w, number, events, begun))

    def _push(self, warp: Warp) -> None:
        self.serial += 1
        heapq.heappush(self.heap, (warp.time, self.serial, warp))

    def _expect(self, block: int, events: list[tuple[int, Any]]) -> None:
        """Count the arrivals that each barrier will see."""
        seen = Counter[int]()
        for chunk, data in events:
            first = self.recording.steps[chunk].first
            for key in _arrivals(first, data, seen):
                self.expected[block, key] = self.expected.get((block, key), 0) + 1
            if _is_barrier(first):
                seen[data[0]] += 1

    def _advance(self, warp: Warp) -> None:
        """Let a warp execute its next chunk; push it again when that is done."""
        if warp.at == len(warp.events):
            self.end = max(self.end, warp.time)
            self.running[warp.block] -= 1
            if not self.running[warp.block] and self.left:
                self._start(warp.time)
            return
        chunk, data = warp.events[warp.at]
        step = self.recording.steps[chunk]
        if not warp.halfway:
            warp.begun = warp.begun or warp.time
            if self._await(warp, step.awaits[0]):
                self._push(warp)  # others go first until then
                return
            warp.halfway = True
            if not self._first(warp, step, data):
                return
            if self._await(warp, step.awaits[1]):
                self._push(warp)
                return
        elif self._await(warp, step.awaits[1]):
            self._push(warp)
            return
        self._rest(warp, step)
        self._slice(
            f"warp {warp.number}", step.name, warp.begun, warp.time - warp.begun, warp.block
        )
        warp.at += 1
        warp.halfway, warp.begun = False, 0.0
        self._push(warp)

    def _slice(self, track: str, name: str, start: float, length: float, block: int) -> None:
        if self.slices is not None:
            line = int(name.split()[0]) if name.split()[0].isdigit() else 0
            self.slices.append(Slice(block, track, name, start, max(length, 0.0), line))

    def _await(self, warp: Warp, producers: tuple[ProfiledOperation, ...]) -> bool:
        """Let a warp wait for the results that it reads; True if it has to."""
        before = warp.time
        for one in producers:
            ready = warp.ready.get(one, 0.0)
            if ready > warp.time:
                self.waits[one.kind] += ready - warp.time
                warp.time = ready
        return warp.time > before

    def _rest(self, warp: Warp, step: ReplayedChunk) -> None:
        """Execute the operations of a chunk after its first."""
        begun = self._take(warp, "issue", step.slots)
        for name in ("integer", "special"):
            cost = getattr(step, name)
            if cost:
                begun = max(begun, self._take(warp, name, cost))
        warp.time = max(begun, warp.time + step.chain)
        for one in step.long:
            if one.kind == "tensor core":
                self._multiply(warp, one)
            else:
                done = max(self.free["shared"], warp.time) + one.count / self.rates.warp
                self.free["shared"] = done
                self.busy["shared"] += one.count / self.rates.warp
                warp.ready[one] = done + self.rates.warp_latency

    def _take(self, warp: Warp, unit: str, cost: float) -> float:
        """Take `cost` cycles of a unit of the warp's partition; the time when they are over."""
        part = self.partitions[warp.number % PARTITIONS]
        part[unit] = max(part[unit], warp.time) + cost
        self.busy[unit] += cost
        return part[unit]

    def _serve(self, unit: str, time: float, cost: float) -> float:
        self.free[unit] = max(self.free[unit], time) + cost
        self.busy[unit] += cost
        return self.free[unit]

    def _multiply(self, warp: Warp, one: ProfiledOperation) -> None:
        if one.op.name == "cute.ptx_wgmma":
            self._wgmma(warp, one)
        else:
            self._mma(warp, one)

    def _mma(self, warp: Warp, one: ProfiledOperation) -> None:
        warp.time = self._take(warp, "issue", one.count)
        cost = one.flops / (self.rates.mma / PARTITIONS)
        done = self._take(warp, "tensor", cost)
        warp.ready[one] = done + self.rates.mma_latency - cost
        self._slice("tensor cores", f"{_line(one)} mma", done - cost, cost, warp.block)
        # A warp goes on while the unit works, but only so far ahead.
        part = self.partitions[warp.number % PARTITIONS]
        warp.time = max(warp.time, part["tensor"] - 2 * cost)

    def _first(self, warp: Warp, step: ReplayedChunk, data: Any) -> bool:
        """Execute the first operation of a chunk; False if the warp waits for others."""
        one, name = step.first, step.first.op.name
        if one.memory is not None:
            self._touch(warp, one, data)
        elif name.startswith("nvvm.tcgen05.mma"):
            self._tcgen05(warp, one, data)
        elif name == "nvvm.tcgen05.commit":
            for place in data or ():
                self._arrive(warp.block, place, max(warp.group, warp.time))
        elif one.kind == "tensor core":
            self._multiply(warp, one)
        elif one.kind == "warp":
            step_long = self._serve("shared", warp.time, one.count / self.rates.warp)
            warp.ready[one] = step_long + self.rates.warp_latency
        elif one.kind == "TMA":
            self._copy(warp, one, data)
        elif one.kind in ("copy group", "tensor group"):
            self._groups(warp, step, name)
        elif one.kind == "mbarrier":
            return self._mbarrier(warp, step, data)
        elif one.kind == "barrier":
            return self._barrier(warp, step, data)
        return True

    def _touch(self, warp: Warp, one: ProfiledOperation, data: Any) -> None:
        sectors, _, wavefronts = data
        memory = one.memory
        assert memory is not None
        warp.time = self._take(warp, "issue", memory.instructions)
        done = warp.time
        if wavefronts and memory.space != GLOBAL:
            done = self._serve("shared", warp.time, wavefronts) + self.rates.shared_latency
        elif sectors:
            passes = max(sectors / 4, memory.instructions)  # of 128 bytes through the L1 cache
            self._serve("shared", warp.time, passes)
            done = self._fetch(warp.time, sectors * SECTOR)
        if one.kind == "asynchronous copy":
            warp.copies[-1].append(done)
            self._slice(
                "cp.async", f"{_line(one)} cp.async", warp.time, done - warp.time, warp.block
            )
        elif not memory.writes or memory.atomic:
            warp.ready[one] = done
        # The unit takes in no more than it has queues for.
        warp.time = max(warp.time, self.free["shared"] - 256)

    def _fetch(self, time: float, nbytes: float) -> float:
        """Move bytes between the multiprocessor and L2, and memory; the time they are there."""
        arrived = self._serve("l2", time, nbytes / self.l2_rate)
        from_memory = self._serve("memory", time, nbytes * self.cold / self.memory_rate)
        use = min(self.busy["memory"] / max(time, 2000.0), 0.97)
        queue = self.rates.memory_queue * use / (2 - 2 * use)
        latency = self.rates.l2_latency
        latency += self.cold * (self.rates.memory_latency + queue - self.rates.l2_latency)
        return max(arrived, from_memory) + latency

    def _copy(self, warp: Warp, one: ProfiledOperation, data: Any) -> None:
        nbytes, where = data if isinstance(data, tuple) else (0, [])
        begun = warp.time = self._take(warp, "issue", 2)
        done = self._fetch(begun, nbytes) + self.rates.tma_latency
        self._slice("TMA", f"{_line(one)} {nbytes} bytes", begun, done - begun, warp.block)
        if where:
            for place in where:
                self._arrive(warp.block, place, done)
        else:
            warp.stores[-1].append(done)

    def _wgmma(self, warp: Warp, one: ProfiledOperation) -> None:
        warp.time = self._take(warp, "issue", one.count)
        part = self.partitions[warp.number % PARTITIONS]
        begun = max(part["tensor"], warp.time)
        done = self._take(warp, "tensor", one.flops / (self.rates.wgmma / PARTITIONS))
        warp.group = done + self.rates.wgmma_latency
        self._slice("tensor cores", f"{_line(one)} wgmma", begun, done - begun, warp.block)

    def _tcgen05(self, warp: Warp, one: ProfiledOperation, flops: float) -> None:
        """Issue a product of one thread, on the tensor cores of the whole multiprocessor."""
        warp.time = self._take(warp, "issue", one.count)
        begun = max(warp.time, *(part["tensor"] for part in self.partitions))
        done = begun + flops / self.rates.wgmma
        for part in self.partitions:
            part["tensor"] = done
        self.busy["tensor"] += (done - begun) * PARTITIONS
        warp.group = done + self.rates.wgmma_latency
        self._slice("tensor cores", f"{_line(one)} tcgen05.mma", begun, done - begun, warp.block)

    def _groups(self, warp: Warp, step: ReplayedChunk, name: str) -> None:
        """Commit a group of asynchronous work, or wait for all but the last groups."""
        queue = warp.stores if "bulk" in name else warp.copies
        if "wgmma" in name:
            if "commit" in name:
                warp.products.append(warp.group)
            elif "wait" in name:
                done = warp.products[: len(warp.products) - (step.groups or 0)]
                self._wait_until(warp, max(done, default=0.0), "wgmma")
        elif "commit" in name:
            queue.append([])
        elif "wait" in name:
            closed = queue[:-1] if "group" in name else queue
            done = [t for group in closed[: len(closed) - (step.groups or 0)] for t in group]
            self._wait_until(warp, max(done, default=0.0), "copies")

    def _wait_until(self, warp: Warp, time: float, what: str) -> None:
        if time > warp.time:
            self.waits[what] += time - warp.time
            warp.time = time

    def _mbarrier(self, warp: Warp, step: ReplayedChunk, data: Any) -> bool:
        name = step.first.op.name
        warp.time = self._take(warp, "issue", 1)
        if "arrive" in name:
            for place in data or ():
                self._arrive(warp.block, place, warp.time + self.rates.mbarrier / 2)
        elif "wait" in name and data is not None:
            return self._pass(warp, ("phase", *data), self.rates.mbarrier / 2, "mbarriers")
        return True

    def _barrier(self, warp: Warp, step: ReplayedChunk, data: Any) -> bool:
        if not _is_barrier(step.first):
            return True
        (key,) = _arrivals(step.first, data, warp.barriers)
        warp.barriers[data[0]] += 1
        cost = self.rates.barrier_warp * self.expected[warp.block, key] + self.rates.barrier
        self._note(warp.block, key, warp.time)
        if "arrive" in step.first.op.name:
            return True
        return self._pass(warp, key, cost, "barriers")

    def _arrive(self, block: int, place: Any, time: float) -> None:
        self._note(block, ("phase", *place), time)

    def _note(self, block: int, key: Any, time: float) -> None:
        found = self.arrived.setdefault((block, key), [0, 0.0, []])
        found[0] += 1
        found[1] = max(found[1], time)
        if found[0] >= self.expected.get((block, key), 0):
            for warp, cost, what in found[2]:
                self._wait_until(warp, found[1] + cost, what)
                self._push(warp)
            found[2] = []

    def _pass(self, warp: Warp, key: Any, cost: float, what: str) -> bool:
        """Let a warp wait for a phase; True if it goes on at once."""
        wanted = self.expected.get((warp.block, key), 0)
        found = self.arrived.setdefault((warp.block, key), [0, 0.0, []])
        if found[0] >= wanted:
            if wanted:
                self._wait_until(warp, found[1] + cost, what)
            return True
        found[2].append((warp, cost, what))
        return False


def _is_barrier(one: ProfiledOperation) -> bool:
    return one.op.name in ("gpu.barrier", "nvvm.barrier0", "nvvm.barrier", "nvvm.barrier.arrive")


def _arrivals(one: ProfiledOperation, data: Any, seen: Counter[int]) -> list[Any]:
    """The keys of the barriers and phases at which an event arrives; `seen` are the warp's earlier
    arrivals by the barrier's number, which tell the generation where the machine does not.
    """
    if _is_barrier(one):
        number, generation = data
        return [("bar", number, generation if generation >= 0 and number else seen[number])]
    if one.op.name == "nvvm.tcgen05.commit" or (one.kind == "mbarrier" and "arrive" in one.op.name):
        return [("phase", *place) for place in data or ()]
    if one.kind == "TMA" and isinstance(data, tuple):
        return [("phase", *place) for place in data[1]]
    return []


def _line(one: ProfiledOperation) -> str:
    return str(one.site.span.line) if one.site.span is not None else "?"


def fraction_from_memory(run: KernelRun) -> float:
    """The part of the bytes asked for that have to come from memory, or go there: the arrays' bytes
    once, of those that the whole launch asks for.
    """
    launch = run.launch
    assert launch is not None
    asked = sum(run.requested.values())
    if not asked:
        return 0.0
    whole = math.prod(launch.grid) / max(launch.blocks, 1)
    needed = sum(min(size, run.requested.get(base, 0) * whole) for base, size in run.arrays.items())
    return min(1.0, needed / (asked * whole))
