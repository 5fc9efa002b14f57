"""Counting: an observer that counts what every operation of a kernel does while it runs.

A kernel is divided into *chunks*, operations that one warp executes one after another under one
mask: each has counters of warps and lanes, and begins with a call of the counter. What touches
memory, or waits, begins a chunk of its own, whose call has the addresses too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from basedsl_cute.sim.machine.memory import LOCAL_WINDOW, SHARED_WINDOW
from basedsl_cute.sim.machine.state import Group, Mask, SimLaunch
from basedsl_cute.sim.machine.tcgen05_operands import decode
from basedsl_cute.sim.machine.tensor_maps import find_tensor_map
from basedsl_cute.sim.options import LockstepWidth
from basedsl_cute.sim.profiling import transactions
from basedsl_cute.sim.profiling.operations import (
    GLOBAL,
    LOCAL,
    SHARED,
    MemoryReference,
    ProfiledOperation,
    describe,
)
from basedsl_cute.sim.rules.tcgen05 import SCALE_VECTORS
from basedsl_cute.sim.translate.records import KernelRecord, Op

_TMA = "nvvm.cp.async.bulk."
_COPIES = {
    "tensor.shared.cluster.global", "tensor.global.shared.cta", "tensor.reduce",
    "shared.cluster.global", "global.shared.cta",
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Chunk:
    """Operations that warps execute together: how many did so, with how many lanes in all, and how
    many of them with some lanes masked off.
    """

    operations: list[ProfiledOperation] = field(default_factory=list)
    warps: int = 0
    lanes: int = 0
    partial: int = 0


@dataclass(slots=True, eq=False)
class ChunkExecution:
    """One execution of a chunk by the warps of a group: `active` says which, None for all. `data`
    is what its first operation did, with an entry per warp where it touched memory.
    """

    chunk: int
    active: Any
    data: Any = None


class KernelRun:
    """One launch of a kernel while it is counted: `chunks`, and the `events` of each group if they
    are kept. Generated code calls it as `profiler`.
    """

    def __init__(self, record: KernelRecord, keeps_events: bool) -> None:
        self.record = record
        self.chunks: list[Chunk] = []
        self.events: dict[Group, list[ChunkExecution]] | None = {} if keeps_events else None
        self.launch: SimLaunch | None = None
        self.kernel = record.name
        self.requested: dict[int | None, int] = {}  # global sectors, by the base of the array
        self.arrays: dict[int, int] = {}  # bytes of the arrays that were touched, by their bases

    def enter(self, g: Group, k: int, m: Mask) -> None:
        """Count an execution of chunk `k` by the lanes in `m`."""
        self._count(g, k, m, None)

    def branch(self, g: Group, k: int, condition: Any, m: Mask) -> None:
        """Count the execution of a chunk whose last operation divides lanes by `condition`."""
        self._count(g, k, m, None)
        yes = np.broadcast_to(condition, (g.lanes,))
        no = ~yes
        if m is not None:
            yes, no = yes & m, no & m
        starts = g.shape.warp_starts
        both = np.logical_or.reduceat(yes, starts) & np.logical_or.reduceat(no, starts)
        self.chunks[k].operations[0].diverged += int(np.count_nonzero(both))

    def touch(self, g: Group, k: int, address: Any, m: Mask, target: Any = None) -> None:
        """Count an access to memory at `address`, and of an asynchronous copy, at `target` too."""
        operation = self.chunks[k].operations[0]
        memory = operation.memory
        assert memory is not None
        address = np.broadcast_to(address, (g.lanes,))
        if memory.rows:
            asked = g.shape.lane < memory.rows
            m = asked if m is None else m & asked
        rows, mask = by_warp(g, address, m)
        active = int(mask.sum())
        operation.requests += int(mask.any(axis=1).sum()) * memory.instructions
        operation.bytes += active * memory.nbytes * memory.instructions
        found = [np.zeros(len(rows), np.int64) for _ in range(3)]  # sectors, lines, wavefronts
        for number in range(memory.instructions):
            part = self._transactions(g, operation, rows + number * memory.nbytes, mask)
            found = [a + b for a, b in zip(found, part, strict=True)]
        if target is not None:
            places, inside = by_warp(g, np.broadcast_to(target, (g.lanes,)), m)
            needed, fewest = transactions.wavefronts(places, inside, memory.nbytes)
            operation.wavefronts += int(needed.sum())
            operation.ideal_wavefronts += int(fewest.sum())
            found[2] = found[2] + needed
        self._count(g, k, None if memory.rows else m, found)

    def _transactions(
        self, g: Group, operation: ProfiledOperation, rows: Any, mask: Any
    ) -> tuple[Any, Any, Any]:
        memory = operation.memory
        assert memory is not None
        space, none = memory.space, np.zeros(len(rows), np.int64)
        if space == 0 and mask.any():
            first = int(rows[mask][0])
            space = LOCAL if first >= LOCAL_WINDOW else SHARED if first >= SHARED_WINDOW else GLOBAL
        if space == GLOBAL:
            sectors = transactions.sectors(rows, mask)
            lines = transactions.lines(rows, mask)
            operation.sectors += int(sectors.sum())
            operation.lines += int(lines.sum())
            ideal = transactions.ideal_sectors(rows, mask, memory.nbytes)
            operation.ideal_sectors += int(ideal.sum())
            self._note_array(g, rows, mask, int(sectors.sum()))
            return sectors, lines, none
        if space == LOCAL:  # the lanes' copies of a word lie beside each other
            sectors = -(-mask.sum(axis=1) * memory.nbytes // transactions.SECTOR)
            operation.sectors += int(sectors.sum())
            operation.ideal_sectors += int(sectors.sum())
            return sectors, none, none
        if space in (SHARED, 7):
            matrix = 8 if memory.rows else 0
            needed, fewest = transactions.wavefronts(rows, mask, memory.nbytes, matrix)
            operation.wavefronts += int(needed.sum())
            operation.ideal_wavefronts += int(fewest.sum())
            return none, none, needed
        return none, none, none

    def _note_array(self, g: Group, rows: Any, mask: Any, sectors: int) -> None:
        if mask.any():
            self.note_bytes(g, int(rows[mask][0]), sectors * transactions.SECTOR)

    def note_bytes(self, g: Group, address: int, nbytes: int) -> None:
        """Note that bytes of the array at a global address were asked for."""
        segment = g.memory.find(address)
        base = None if segment is None else segment.base
        self.requested[base] = self.requested.get(base, 0) + nbytes
        if segment is not None:
            self.arrays[segment.base] = segment.size

    def copy(self, g: Group, k: int, m: Mask, maps: Any, mbar: Any, masks: Any) -> None:
        """Count copies of boxes by the TMA unit, one by each lane in `m`."""
        operation, total, where = self.chunks[k].operations[0], 0, []
        for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
            tensor = find_tensor_map(g, int(maps[lane]), lane, operation.site)
            size = int(np.prod(tensor.box)) * tensor.itemsize
            total += size
            self.note_bytes(g, tensor.address, size)
            if mbar is not None:
                bits = None if masks is None else int(masks[lane])
                where += self._targets(g, int(mbar[lane]), bits)
        operation.bytes += total
        self._count(g, k, m, (total, where))

    def _targets(self, g: Group, mbar: int, bits: int | None) -> list[tuple[int, int, int]]:
        blocks = [g.block]
        if bits is not None:
            blocks = [b for rank, b in enumerate(g.block.cluster.blocks) if bits >> rank & 1]
        return [(b.linear, mbar & 0xFFFFFF, _phase(b, mbar & 0xFFFFFF)) for b in blocks]

    def bulk(self, g: Group, k: int, m: Mask, address: Any, sizes: Any, mbar: Any) -> None:
        """Count copies of contiguous bytes by the TMA unit."""
        operation, total, where = self.chunks[k].operations[0], 0, []
        for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
            total += int(sizes[lane])
            self.note_bytes(g, int(address[lane]), int(sizes[lane]))
            if mbar is not None:
                where += self._targets(g, int(mbar[lane]), None)
        operation.bytes += total
        self._count(g, k, m, (total, where))

    def multiply(
        self, g: Group, k: int, m: Mask, form: tuple[str, int, int, bool], number: Any
    ) -> None:
        """Count products by tcgen05.mma: a kind, its blocks, the elements of a scale factor, and if
        it is weight stationary; `number` has the instruction descriptors, which give the shape.

        The event has the operations that an SM does, in time of those of 16 bits.
        """
        operation, flops = self.chunks[k].operations[0], 0.0
        kind, blocks, vector, is_ws = form
        for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
            what = decode(kind, int(number[lane]) & 0xFFFFFFFF, blocks, vector, is_ws)
            flops += 2.0 * what.m * what.n * what.k
        operation.issued_flops += flops
        self._count(g, k, m, flops / blocks / _SPEED.get(kind, 1.0))

    def move(self, g: Group, k: int, m: Mask, nbytes: int) -> None:
        """Count copies from and to tensor memory, of `nbytes` a warp."""
        warps = g.shape.warp_starts.size
        if m is not None:
            lanes = np.add.reduceat(m.astype(np.int64), g.shape.warp_starts)
            warps = int(np.count_nonzero(lanes))
        self.chunks[k].operations[0].bytes += nbytes * warps
        self._count(g, k, m, nbytes)

    def arrive(self, g: Group, k: int, m: Mask, address: Any) -> None:
        """Count arrivals at mbarriers."""
        lanes = range(g.lanes) if m is None else np.flatnonzero(m).tolist()
        places = {int(address[lane]) & 0xFFFFFFFF for lane in lanes}
        self._count(g, k, m, [_place(g, at) for at in places])

    def await_phase(
        self, g: Group, k: int, m: Mask, address: Any, which: Any, parity: bool
    ) -> None:
        """Count looks at an mbarrier: what is waited for is the phase that `which` means."""
        lane = 0 if m is None else int(m.argmax())
        owner, at, now = _place(g, int(address[lane]) & 0xFFFFFFFF)
        phase = int(which[lane])
        if parity:
            phase = now if now % 2 == phase % 2 else now - 1
        self._count(g, k, m, (owner, at, phase))

    def sync(self, g: Group, k: int, m: Mask, number: Any = 0, count: Any = None) -> None:
        """Count arrivals at a barrier of the block."""
        number = int(np.ravel(number)[0])
        known = g.block.barriers.get(number)
        generation = known.generation if known is not None else -1
        self._count(g, k, m, (number, generation))

    def _count(self, g: Group, k: int, m: Mask, data: Any) -> None:
        chunk, shape, active = self.chunks[k], g.shape, None
        if m is None:
            chunk.warps += shape.warp_starts.size
            chunk.lanes += shape.size
        else:
            lanes = np.add.reduceat(m.astype(np.int64), shape.warp_starts)
            active = lanes > 0
            chunk.warps += int(np.count_nonzero(active))
            chunk.lanes += int(lanes.sum())
            chunk.partial += int(np.count_nonzero(active & (lanes < shape.warp_sizes)))
        if self.events is not None:
            self.events.setdefault(g, []).append(ChunkExecution(k, active, data))


def _place(g: Group, address: int) -> tuple[int, int, int]:
    """The block, the address and the phase of an mbarrier."""
    rank, at = address >> 24 & 0xFF, address & 0xFFFFFF
    block = g.block.cluster.blocks[rank - 1] if rank else g.block
    return block.linear, at, _phase(block, at)


def _phase(block: Any, address: int) -> int:
    found = block.mbarriers.get(address)
    return 0 if found is None else int(found.phase)


def by_warp(g: Group, address: Any, m: Mask) -> tuple[Any, Any]:
    """Addresses and the mask by warp, `(warps, lanes of a warp)`."""
    shape = g.shape
    mask = np.ones(g.lanes, np.bool_) if m is None else m
    if shape.threads % shape.of_warp == 0:
        return address.reshape(-1, shape.of_warp), mask.reshape(-1, shape.of_warp)
    rows = np.repeat(np.arange(shape.warp_starts.size), shape.warp_sizes)
    columns = np.arange(g.lanes) - shape.warp_start
    wide = np.zeros((shape.warp_starts.size, shape.of_warp), np.int64)
    inside = np.zeros(wide.shape, np.bool_)
    wide[rows, columns], inside[rows, columns] = address, mask
    return wide, inside


class Counter:
    """The observer: `runs` has a record of each launch. Of each, the first `blocks` blocks run, all
    where it is None. With `keeps_events`, the events of every group are kept.
    """

    width: LockstepWidth | None = None

    def __init__(self, blocks: int | None = None, keeps_events: bool = False) -> None:
        self.blocks = blocks
        self.keeps_events = keeps_events
        self.runs: list[KernelRun] = []
        self._run: KernelRun | None = None
        self._open: Chunk | None = None

    def translating(self, record: KernelRecord) -> None:
        self._run = KernelRun(record, self.keeps_events)

    def begin(self, launch: SimLaunch, kernel: str) -> None:
        assert self._run is not None
        self._run.launch = launch
        if self.blocks is not None:
            x, y, z = launch.cluster
            unit = x * y * z
            launch.blocks = min(launch.blocks, -(-self.blocks // unit) * unit)
        self.runs.append(self._run)

    def end(self, launch: SimLaunch) -> None:
        pass

    def boundary(self, e: Any) -> None:
        self._open = None

    def before(self, e: Any, op: Op) -> None:
        operation = describe(e, op)
        if operation is None:
            return
        call = self._call(e, op, operation)
        if call is None and self._open is not None:
            self._open.operations.append(operation)
            return
        assert self._run is not None
        number = len(self._run.chunks)
        self._open = Chunk([operation])
        self._run.chunks.append(self._open)
        e.globals["profiler"] = self._run
        method, arguments = call or ("enter", e.mask)
        e.line(f"profiler.{method}(g, {number}, {arguments})")

    def _call(self, e: Any, op: Op, operation: ProfiledOperation) -> tuple[str, str] | None:
        """The method of KernelRun that notes `op`, with its arguments; None if that is `enter`."""
        if operation.memory is not None:
            return _touched(e, op, operation.memory)
        if op.name == "scf.if" and op in e.uniformity.diverging:
            return "branch", f"{e.lanes(op.operands[0])}, {e.mask}"
        name = op.name.removesuffix(".shared")
        if name.startswith("nvvm.mbarrier."):
            return _mbarrier(e, op, name.removeprefix("nvvm.mbarrier."))
        if op.name.startswith(_TMA) and op.name.removeprefix(_TMA) in _COPIES:
            return _copied(e, op, op.name.removeprefix(_TMA))
        if op.name == "nvvm.tcgen05.commit":
            return "arrive", f"{e.mask}, {e.lanes(op.operands[0])}"
        if op.name.startswith(_PRODUCTS):
            return _product(e, op)
        if op.name in ("cute.tmem_load", "cute.tmem_store", "nvvm.tcgen05.cp"):
            return "move", f"{e.mask}, {_tensor_memory_bytes(op)}"
        if op.name in ("gpu.barrier", "nvvm.barrier0"):
            return "sync", e.mask
        if op.name in ("nvvm.barrier", "nvvm.barrier.arrive"):
            numbers = op.segments()[0] if op.name == "nvvm.barrier" else op.operands[:-1]
            return "sync", f"{e.mask}, {e.ref(numbers[0]) if numbers else 0}"
        if operation.kind in ("copy group", "tensor group", "barrier") or op.regions:
            return "enter", e.mask
        return None


def _touched(e: Any, op: Op, memory: MemoryReference) -> tuple[str, str]:
    arguments = f"{e.ref(op.operands[memory.operand])}, {e.mask}"
    if op.name == "nvvm.cp.async.shared.global":
        arguments += f", {e.ref(op.operands[0])}"
    return "touch", arguments


_PRODUCTS = "nvvm.tcgen05.mma"
# How much faster kinds of tcgen05.mma are than those of 16 bits (NVIDIA Blackwell Architecture
# Technical Brief, dense rates).
_SPEED = {"tf32": 0.5, "i8": 2.0, "f8f6f4": 2.0, "mxf8f6f4": 2.0, "mxf4": 4.0, "mxf4nvf4": 4.0}


def _product(e: Any, op: Op) -> tuple[str, str]:
    is_ws, scaled = op.name.endswith(".ws"), op.name.endswith(".block_scale")
    number = op.segments()[3][0] if op.name == _PRODUCTS else op.operands[3]
    blocks = 2 if op.word("ctaGroup", "cta_1") == "cta_2" else 1
    vector = SCALE_VECTORS[op.word("blockScale", "default")] if scaled else 0
    form = op.word("kind"), blocks, vector, is_ws
    return "multiply", f"{e.mask}, {form!r}, {e.lanes(number)}"


def _tensor_memory_bytes(op: Op) -> int:
    """The bytes that a warp's instruction moves (PTX ISA, tcgen05.ld and tcgen05.cp, shapes)."""
    if op.name == "nvvm.tcgen05.cp":
        lanes, bits = map(int, re.findall(r"[0-9]+", op.word("shape").removeprefix("shape_"))[:2])
        return lanes * bits // 8
    lanes, bits = map(int, re.findall(r"[0-9]+", op.string("shape"))[:2])
    return lanes * bits // 8 * op.integer("repeat")


def _mbarrier(e: Any, op: Op, name: str) -> tuple[str, str] | None:
    if "arrive" in name:
        return "arrive", f"{e.mask}, {e.lanes(op.operands[0])}"
    if "wait" in name:
        address, which = (e.lanes(value) for value in op.operands[:2])
        parity = "parity" in name or str(op.operands[1].type) == "i32"
        return "await_phase", f"{e.mask}, {address}, {which}, {parity}"
    return None


def _copied(e: Any, op: Op, name: str) -> tuple[str, str]:
    parts = [e.lanes(part[0]) if part else "None" for part in op.segments()]
    if name == "shared.cluster.global":
        to, source, barrier, size, *_ = parts
        return "bulk", f"{e.mask}, {source}, {size}, {barrier}"
    if name == "global.shared.cta":
        to, _, size, *_ = parts
        return "bulk", f"{e.mask}, {to}, {size}, None"
    if name == "tensor.shared.cluster.global":
        _, map_, _, barrier, _, mask, *_ = parts
        return "copy", f"{e.mask}, {map_}, {barrier}, {mask}"
    return "copy", f"{e.mask}, {parts[0]}, None, None"
