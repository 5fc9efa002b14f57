"""Tensor memory of a block: allocation, tcgen05.ld and st (PTX ISA, of these titles).

A block has an SM's tensor memory for itself. Stores are complete when the warp waits for them, and
matrix instructions when somebody sees the mbarrier of their commit (`tcgen05`): what touches their
words before is an error.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.algebra import lane_stride, size, tmem_copy_atom
from basedsl_cute.hardware.targets import WARP_SIZE, WARPS_PER_WARPGROUP
from basedsl_cute.hardware.tensor_memory import MIN_TMEM_COLUMNS, TMEM_COLUMNS, TMEM_LANES
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.machine import tensor_owners, tensor_races
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.load_store import store_memory
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.machine.state import (
    Block,
    Group,
    Mask,
    PendingTmemStore,
    TensorMemory,
    TmemColumns,
)
from basedsl_cute.sim.site import Site

_LANE, _COLUMN = 0x7F, 0xFFFF


def lane_and_column(address: int) -> tuple[int, int]:
    """The lane and the column that an address means."""
    return address >> 16 & _LANE, address & _COLUMN


def _one(g: Group, value: Any, m: Mask, what: str, site: Site) -> int:
    """The value that all lanes of a warp give. Raises SimulationError for a part of a warp, and for
    different values.
    """
    if m is not None or g.lanes != WARP_SIZE:
        raise SimulationError(
            f"{what} in divergent control flow: all lanes of the warp must be here", site
        )
    first = int(value[0])
    if (np.asarray(value) != first).any():
        raise SimulationError(
            f"{what}: the lanes of a warp give different values", site, g.thread(0)
        )
    return first


# Allocation ---------------------------------------------------------------------------------------


def group_blocks(g: Group, blocks: int, what: str, site: Site) -> list[Block]:
    """The block of a group, or its pair of the cluster, the even one first. Raises SimulationError
    for a block without a pair, and where another number of blocks worked together before: a kernel
    has one for all of tcgen05.
    """
    tmem = g.block.tensor_memory
    if tmem.group is None:
        tmem.group = blocks, site
    elif tmem.group[0] != blocks:
        raise SimulationError(
            f"{what} of {blocks} block{'s' * (blocks > 1)} in a kernel whose tcgen05 instructions "
            f"are of {tmem.group[0]}",
            site,
            g.thread(0),
            hint="all tcgen05 instructions of a kernel have the same cta_group",
            notes=(("the other is here", tmem.group[1].span),),
        )
    if blocks == 1:
        return [g.block]
    members, first = g.block.cluster.blocks, g.block.rank & ~1
    if first + 2 > len(members):
        raise SimulationError(
            f"{what} of two blocks by block {g.block.rank} of a cluster of {len(members)}",
            site,
            g.thread(0),
            hint="launch with cluster=(2, 1, 1), or a multiple",
        )
    return [members[first], members[first + 1]]


def allocate(
    g: Group, blocks: int, write: MemoryAccess, holder: Any, count: Any, m: Mask
) -> Wait | None:
    """Allocate columns and write their address to shared memory (tcgen05.alloc); the wait until
    there are so many, and until the other block of a pair asks for as many; None if that is now.
    Raises SimulationError for another number than a power of two, and after the permit was given
    up.
    """
    site, tmem = write.site, g.block.tensor_memory
    columns = _one(g, count, m, "tcgen05.alloc", site)
    members = group_blocks(g, blocks, "tcgen05.alloc", site)
    if not MIN_TMEM_COLUMNS <= columns <= TMEM_COLUMNS or columns & (columns - 1):
        raise SimulationError(
            f"tcgen05.alloc of {columns} columns: a power of two from {MIN_TMEM_COLUMNS} to "
            f"{TMEM_COLUMNS}",
            site,
            g.thread(0),
        )
    if tmem.relinquished is not None:
        raise SimulationError(
            "tcgen05.alloc after the block gave up the permit to allocate",
            site,
            g.thread(0),
            notes=(("it gave it up here", tmem.relinquished.span),),
        )
    number = len(tmem.requests)
    tmem.requests.append(TmemColumns(columns, blocks, site))

    def ready() -> bool:
        for block in members:
            requests = block.tensor_memory.requests
            if len(requests) <= number:
                return False
            if requests[number].columns != columns:
                raise SimulationError(
                    f"tcgen05.alloc of two blocks: one asks for {columns} columns, the other for "
                    f"{requests[number].columns}",
                    site,
                    g.thread(0),
                    notes=(("the other is here", requests[number].site.span),),
                )
        start = next(
            (at for at in range(0, TMEM_COLUMNS, columns) if _is_free(tmem, at, columns)), None
        )
        if start is None:
            return False
        tmem.allocated[start] = TmemColumns(columns, blocks, site)
        tmem.written[:, start : start + columns] = False
        tensor_owners.forget(g.block, slice(start, start + columns))
        first = np.zeros(g.lanes, np.bool_)
        first[0] = True
        store_memory(g, write, holder, np.full(g.lanes, start, np.int32), first)
        return True

    def describe() -> str:
        held = ", ".join(f"{a.columns} at {a.site.line}" for a in tmem.allocated.values())
        behind = [x.rank for x in members if len(x.tensor_memory.requests) <= number]
        if behind:
            return f"block {behind[0]} of the pair to allocate {columns} columns too"
        return f"{columns} columns of tensor memory; of {TMEM_COLUMNS} there are allocated {held}"

    return None if ready() else Wait(ready, describe, site)


def _is_free(tmem: TensorMemory, start: int, count: int) -> bool:
    return all(
        start + count <= at or at + held.columns <= start for at, held in tmem.allocated.items()
    )


def free(g: Group, blocks: int, address: Any, count: Any, m: Mask, site: Site) -> None:
    """Free columns (tcgen05.dealloc). Raises SimulationError for others than one alloc gave, and
    while an instruction in flight may write them.
    """
    tmem = g.block.tensor_memory
    start = _one(g, address, m, "tcgen05.dealloc", site)
    columns = _one(g, count, m, "tcgen05.dealloc", site)
    group_blocks(g, blocks, "tcgen05.dealloc", site)
    found = tmem.allocated.get(start)
    if found is None or found.columns != columns:
        there = "nothing" if found is None else f"{found.columns} columns"
        raise SimulationError(
            f"tcgen05.dealloc of {columns} columns at {start:#x}: {there} were allocated there",
            site,
            g.thread(0),
        )
    for pending in tmem.pending:
        if pending.columns.start < start + columns and start < pending.columns.stop:
            raise SimulationError(
                "tcgen05.dealloc of columns that a tcgen05.mma may still write",
                site,
                g.thread(0),
                hint="wait for the mbarrier of tcgen05.commit",
                notes=(("it was issued here", pending.site.span),),
            )
    del tmem.allocated[start]


def relinquish(g: Group, blocks: int, m: Mask, site: Site) -> None:
    """Give up the permit to allocate (tcgen05.relinquish_alloc_permit)."""
    _one(g, np.zeros(g.lanes, np.int32), m, "tcgen05.relinquish_alloc_permit", site)
    group_blocks(g, blocks, "tcgen05.relinquish_alloc_permit", site)
    g.block.tensor_memory.relinquished = site


def check_freed(block: Block) -> None:
    """Raise SimulationError for columns that a block that has ended did not free."""
    for held in block.tensor_memory.allocated.values():
        raise SimulationError(
            f"{held.columns} columns of tensor memory were never freed",
            held.site,
            hint="cute.arch.dealloc_tmem, by the warp that allocated, after all have read them",
        )


def check_allocated(
    g: Group, columns: range, what: str, site: Site, block: Block | None = None
) -> None:
    """Raise SimulationError for columns that are not all of one allocation of the block, by default
    the group's.
    """
    block = g.block if block is None else block
    for start, held in block.tensor_memory.allocated.items():
        if start <= columns.start and columns.stop <= start + held.columns:
            return
    of = "" if block is g.block else f" of block {block.rank} of the cluster"
    raise SimulationError(
        f"{what} columns {columns.start} to {columns.stop - 1} of tensor memory{of}, which are "
        "not allocated",
        site,
        g.thread(0),
    )


# Loads and stores ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TmemCopy:
    """One op `cute.tmem_load` or `cute.tmem_store`, as translating fixes it."""

    shape: str
    repeat: int
    packed: bool
    steps: tuple[int, ...]
    site: Site
    reduction: str = ""
    kind: str = ""


@functools.cache
def _places(shape: str, repeat: int, packed: bool) -> tuple[Any, Any]:
    """Lanes and columns, from the address on, of every register of a warp, or with `packed` of
    every half: both `(registers, 32)`.
    """
    atom = tmem_copy_atom(shape, repeat, packed=packed)
    assert atom.tmem is not None
    bits = 16 if packed else 32
    count = int(size(atom.layout_dst_tv, 1)) // bits
    where = np.array(
        [
            [atom.tmem(atom.layout_dst_tv((t, bits * i))) for t in range(WARP_SIZE)]
            for i in range(count)
        ]
    )
    return where // lane_stride(1), where % lane_stride(1) // 32


def _words(g: Group, copy: TmemCopy, address: Any, m: Mask, verb: str) -> tuple[Any, Any]:
    """Lanes and columns of all registers of a warp. Raises SimulationError for lanes that are not
    the warp's, and for columns that are not allocated or that an instruction in flight writes.
    """
    what = f"tcgen05.{'ld' if verb == 'reads' else 'st'}"
    first_lane, first_column = lane_and_column(_one(g, address, m, what, copy.site))
    lanes, columns = _places(copy.shape, copy.repeat, copy.packed)
    steps = [lane_and_column(step) for step in copy.steps]
    lanes = np.concatenate([lanes + first_lane + lane for lane, _ in steps])
    columns = np.concatenate([columns + first_column + column for _, column in steps])
    own = WARP_SIZE * (g.first_warp % WARPS_PER_WARPGROUP)
    if int(lanes.min()) < own or int(lanes.max()) >= own + WARP_SIZE:
        raise SimulationError(
            f"{what} by warp {g.first_warp} {verb} lanes {int(lanes.min())} to {int(lanes.max())} "
            "of tensor memory",
            copy.site,
            g.thread(0),
            notes=((f"this warp reaches lanes {own} to {own + WARP_SIZE - 1}", None),),
            hint="a warp has the lanes from 32 * (warp % 4)",
        )
    touched = range(int(columns.min()), int(columns.max()) + 1)
    check_allocated(g, touched, f"{what} {verb}", copy.site)
    for pending in g.block.tensor_memory.pending:
        if pending.mask[lanes, columns].any():
            raise SimulationError(
                f"{what} {verb} tensor memory that a tcgen05.mma may still write",
                copy.site,
                g.thread(0),
                hint="wait for the mbarrier of tcgen05.commit",
                notes=(("it was issued here", pending.site.span),),
            )
    return lanes, columns


def load(g: Group, copy: TmemCopy, address: Any, m: Mask) -> Any:
    """The registers that a warp loads (tcgen05.ld), `(registers, 32)`. Raises
    UninitializedReadError, and SimulationError for what the warp has stored and not waited for.
    """
    tmem = g.block.tensor_memory
    lanes, columns = _words(g, copy, address, m, "reads")
    for store in g.tmem_stores:
        if _overlap(store, lanes, columns):
            raise SimulationError(
                "tcgen05.ld reads what a tcgen05.st may still write",
                copy.site,
                g.thread(0),
                hint="cute.arch.fence_view_async_tmem_store() waits for stores",
                notes=(("it was stored here", store.site.span),),
            )
    written = tmem.written[lanes, columns]
    if not written.all():
        bad = np.argwhere(~written)[0]
        raise UninitializedReadError(
            f"tcgen05.ld reads lane {int(lanes[tuple(bad)])}, column {int(columns[tuple(bad)])} "
            "of tensor memory, which nobody has written",
            copy.site,
            g.thread(int(bad[1])),
        )
    tensor_owners.load(g.block, (lanes, columns))
    tensor_races.check_load(g, tensor_races.words_at(lanes, columns), copy.site)
    words = tmem.words[lanes, columns]
    if copy.packed:
        halves = words & np.uint32(0xFFFF)
        words = halves[0::2] | halves[1::2] << np.uint32(16)
    if copy.reduction:
        words = np.concatenate([words, _reduced(copy, words)])
    return words.view(np.int32)


def _reduced(copy: TmemCopy, words: Any) -> Any:
    """The reduction of the registers of each thread, for each instruction, `(steps, 32)`. A number
    wins over NaN.
    """
    dtype = {"f32": np.float32, "s32": np.int32, "u32": np.uint32}[copy.kind]
    values = words.view(dtype).reshape(len(copy.steps), -1, words.shape[1])
    name, _, absolute = copy.reduction.partition(".")
    values = np.abs(values) if absolute else values
    floats = dtype is np.float32
    reduce = {"max": np.fmax if floats else np.maximum, "min": np.fmin if floats else np.minimum}
    return np.ascontiguousarray(reduce[name].reduce(values, 1)).view(np.uint32)


def _overlap(store: PendingTmemStore, lanes: Any, columns: Any) -> bool:
    mask = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.bool_)
    mask[store.lanes, store.columns] = True
    return bool(mask[lanes, columns].any())


def store(g: Group, copy: TmemCopy, address: Any, values: Any, m: Mask) -> None:
    """Store a warp's registers (tcgen05.st); they are there after `wait_for_stores`."""
    lanes, columns = _words(g, copy, address, m, "writes")
    words = np.broadcast_to(values, (values.shape[0], WARP_SIZE)).astype(np.int32).view(np.uint32)
    if copy.packed:
        halves = np.empty((2 * len(words), WARP_SIZE), np.uint32)
        halves[0::2], halves[1::2] = words & np.uint32(0xFFFF), words >> np.uint32(16)
        words = halves
    index = tensor_races.words_at(lanes, columns)
    tensor_races.check_store(g, index, copy.site, is_complete=False)
    g.tmem_stores.append(PendingTmemStore(lanes, columns, words.copy(), copy.site))


def wait_for_stores(g: Group, m: Mask, site: Site) -> None:
    """Complete the stores of a warp (tcgen05.wait::st)."""
    _one(g, np.zeros(g.lanes, np.int32), m, "tcgen05.wait", site)
    tmem = g.block.tensor_memory
    for pending in g.tmem_stores:
        tmem.words[pending.lanes, pending.columns] = pending.words
        tmem.written[pending.lanes, pending.columns] = True
        tensor_owners.store(g, (pending.lanes, pending.columns), pending.site)
        index = tensor_races.words_at(pending.lanes, pending.columns)
        tensor_races.check_store(g, index, pending.site, is_complete=True)
    g.tmem_stores.clear()
