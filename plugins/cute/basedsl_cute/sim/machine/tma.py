"""Tensor copies of the TMA unit (PTX ISA, cp.async.bulk.tensor).

They are performed as late as the program lets them: a load lands when someone next looks at its
mbarrier, a store reads its source and writes its target when they are waited for (`bulk_groups`).

A store writes whole 16 bytes of the contiguous mode, even where its extent ends within them, and a
reduction combines them; it begins at such 16 bytes, and not before the tensor. (Seen on an H200,
which reports an illegal instruction otherwise. The CUDA C++ Programming Guide has the rule about
beginnings, "Multi-dimensional TMA transfers".)

A gather or scatter of four rows has a column and four rows as coordinates, and a tensor map of two
modes with boxes of one row (PTX ISA, tensor "Tiled::gather4 mode"): its box is those four rows,
each of which may be outside of the tensor by itself.

An im2col copy has pixels instead of a box (`im2col`).

A box lies compactly in shared memory, mode 0 fastest. Its swizzle permutes 16-byte units by address
bits: units of 16 bytes within 32, 64 or 128 by the 1, 2 or 3 bits from bit 7 on, or units of 32 by
two (PTX ISA, tensor "Swizzling Modes"), the same permutation that wgmma and tcgen05.mma undo.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.device.tensor_map import TensorMap
from basedsl_cute.hardware.tensor_map_format import REDUCIBLE, SWIZZLE_BITS, TYPE_NAMES
from basedsl_cute.sim.errors import MemoryAccessError, SimulationError, UninitializedReadError
from basedsl_cute.sim.machine import im2col, races
from basedsl_cute.sim.machine.bulk_groups import issue_bulk_store
from basedsl_cute.sim.machine.cluster import owner_block
from basedsl_cute.sim.machine.global_copies import note_load, note_store
from basedsl_cute.sim.machine.guards import GuardedBytes, guard_store
from basedsl_cute.sim.machine.mbarriers import find_mbarrier, land_bytes, send_to_mbarrier
from basedsl_cute.sim.machine.memory import NO_ARGUMENT, WRITTEN
from basedsl_cute.sim.machine.state import Block, Group, LoadedBox, Mask
from basedsl_cute.sim.machine.tensor_maps import active_lanes, find_tensor_map
from basedsl_cute.sim.site import Site

Start = tuple[Any, ...]  # coordinates, the contiguous mode's first; of mode 1 several, or one
_PIECE = 16  # bytes that a store writes at once
_ALIGNMENTS = (128, 256, 512, 1024, 512)  # of the box in shared memory, for each swizzle


def tma_load(
    g: Group,
    m: Mask,
    site: Site,
    maps: Any,
    to: Any,
    mbar: Any,
    masks: Any,
    coordinates: Any,
    of_pair: bool = False,
    mode: str = "tile",
    offsets: Any = (),
) -> None:
    """Copy a box from global to shared memory. Per lane: the address of the tensor map, the shared
    address `to`, the address of the mbarrier that counts the bytes, and a bit per block of the
    cluster that gets the box, at the same addresses (`masks` None: the lane's own). `coordinates`
    are an array per mode, the contiguous one first.

    In mode "tile_gather4" they are a column and four rows; in "im2col" `offsets` are an array per
    spatial mode.

    With `of_pair` (.cta_group::2) the bytes of each block count in its pair at the block that is
    even, or odd, as the mbarrier's own.
    """
    for lane in active_lanes(g, m):
        tensor = find_tensor_map(g, int(maps[lane]), lane, site)
        start: Start = tuple(int(c[lane]) for c in coordinates)
        if mode == "tile_gather4":
            tensor, start = _box_of_rows(g, tensor, start, lane, site)
        tensor = im2col.moved(g, tensor, mode, offsets, lane, site)
        at = int(to[lane])
        owner, barrier = owner_block(g, int(mbar[lane]), lane, site)
        if owner is not g.block and not of_pair:
            raise SimulationError(
                "a TMA load counts at an mbarrier of another block",
                site,
                g.thread(lane),
                hint="CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.TWO) is for a pair of blocks",
            )
        _check_place(g, tensor, at, lane, site)
        place = _places(tensor, at) - g.shared.base
        box = _padded(tensor, _read_global(g, tensor, start, lane, site))
        targets = [g.block]
        if masks is not None:
            targets = _multicast_blocks(g, int(masks[lane]) & 0xFFFF, lane, site)
        for block in targets:
            counting = _counting_block(block, owner) if of_pair else block
            find_mbarrier(counting, barrier, g, site, lane)
            stamp = None
            if block.shadow is not None and counting.shadow is not None:
                offset = barrier - counting.shared.base
                races.check_mbarrier_fenced(counting.shadow, g, site, offset, lane)
                stamp = races.begin_async_write(
                    block.shadow, g, site, "write by a TMA load", place, lane
                )
            block.boxes[at - g.shared.base] = LoadedBox(
                place, box, tensor.swizzle, tensor.box[0] * tensor.shared_itemsize
            )
            land = functools.partial(land_bytes, block, barrier, place, box, stamp, counting)
            send_to_mbarrier(counting, barrier, land)


def _counting_block(target: Block, owner: Block) -> Block:
    """The block of the target's pair whose rank has the parity of the mbarrier's block."""
    counting: Block = target.cluster.blocks[target.rank & ~1 | owner.rank & 1]
    return counting


def tma_prefetch(
    g: Group,
    m: Mask,
    site: Site,
    maps: Any,
    coordinates: Any,
    mode: str = "tile",
    offsets: Any = (),
) -> None:
    """Check a copy of a box into the L2 cache, which changes no memory."""
    for lane in active_lanes(g, m):
        tensor = find_tensor_map(g, int(maps[lane]), lane, site)
        tensor = im2col.moved(g, tensor, mode, offsets, lane, site)
        _elements(g, tensor, tuple(int(c[lane]) for c in coordinates), lane, site)


def tma_store(
    g: Group,
    m: Mask,
    site: Site,
    maps: Any,
    source: Any,
    coordinates: Any,
    reduction: str | None = None,
    mode: str = "tile",
) -> None:
    """Copy a box from shared to global memory in the lane's bulk group, or combine it into that by
    `reduction` (a key of `_REDUCTIONS`). In mode "tile_scatter4" the coordinates are a column and
    four rows.
    """
    for lane in active_lanes(g, m):
        tensor = find_tensor_map(g, int(maps[lane]), lane, site)
        start: Start = tuple(int(c[lane]) for c in coordinates)
        _check_start(g, tensor, start, lane, site)
        if mode == "tile_scatter4":
            tensor, start = _box_of_rows(g, tensor, start, lane, site)
            _check_distinct(g, tensor, start, lane, site)
        tensor = im2col.moved(g, tensor, mode, None, lane, site)
        at = int(source[lane])
        _check_place(g, tensor, at, lane, site)
        place = _places(tensor, at) - g.shared.base
        _check_reduction(g, tensor, reduction, lane, site)
        stamp = None
        if g.shadow is not None:
            stamp = races.begin_async_read(g.shadow, g, site, "read by a TMA store", place, lane)
        read = functools.partial(read_shared, g, place, lane, site)
        write = functools.partial(_write_global, g, tensor, start, lane, site, reduction)
        guard = _guard(g, tensor, start, lane, site, reduction is not None)
        issue_bulk_store(g, lane, read, write, site, stamp, guard)


def _box_of_rows(
    g: Group, tensor: TensorMap, given: tuple[int, ...], lane: int, site: Site
) -> tuple[TensorMap, Start]:
    """The tensor map with a box of four rows, and where they begin: a column, and the rows."""
    if tensor.rank != 2 or tensor.box[1] != 1:
        raise SimulationError(
            f"a TMA copy of four rows by a tensor map of {tensor.rank} modes with a box of "
            f"{tensor.box}",
            site,
            g.thread(lane),
            hint="its map has two modes, and boxes of one row: make_tiled_tma_atom makes it",
        )
    column, *rows = given
    return tensor._replace(box=(tensor.box[0], len(rows))), (column, tuple(rows))


def _check_distinct(g: Group, tensor: TensorMap, start: Start, lane: int, site: Site) -> None:
    """SimulationError if a scatter writes a row of the tensor twice: which is last is not said."""
    inside = [row for row in start[1] if row < tensor.extents[1]]
    if len(set(inside)) < len(inside):
        raise SimulationError(
            f"a TMA scatter writes a row of the tensor twice: rows {start[1]}",
            site,
            g.thread(lane),
            hint="nothing says which of them is written last: give the others a row beyond the "
            f"tensor, such as {tensor.extents[1]}, which is not written",
        )


def _guard(
    g: Group, tensor: TensorMap, start: Start, lane: int, site: Site, reduces: bool
) -> GuardedBytes | None:
    """Guard what a store of a box will write, or combine, where that is in an array."""
    if g.races is None:
        return None
    offset, inside = _elements(g, tensor, start, lane, site, whole_pieces=True)
    segment = g.memory.find(tensor.address)
    if segment is None or not inside.any():
        return None
    starts = offset[inside] + tensor.address - segment.base
    # What lies outside of the array is reported where it is written.
    starts = starts[(starts >= 0) & (starts + tensor.itemsize <= segment.size)]
    note = functools.partial(note_store, g, segment, starts, tensor.itemsize, site, lane, reduces)
    places = starts[:, None] + np.arange(tensor.itemsize)
    return guard_store(g, segment, places, site, lane, note)


def read_shared(g: Group, place: Any, lane: int, site: Site) -> Any:
    """The bytes of shared memory at the offsets `place`. Raises UninitializedReadError."""
    written = g.shared.written
    if written is not None and (written[place] != WRITTEN).any():
        bad = int(place[written[place] != WRITTEN].min())
        name, start, _ = g.shared_variable(bad + g.shared.base)
        raise UninitializedReadError(
            f"a TMA store reads shared memory that no thread has written: byte offset "
            f"{bad + g.shared.base - start} of `{name}`",
            site,
            g.thread(lane),
            hint="write all of it first, then cute.arch.fence_proxy('async.shared', space='cta') "
            "and a barrier",
        )
    return g.shared.raw[place]


def _multicast_blocks(g: Group, mask: int, lane: int, site: Site) -> list[Block]:
    """The blocks of the cluster whose bits are set in `mask`."""
    blocks: list[Block] = g.block.cluster.blocks
    if mask >> len(blocks):
        raise SimulationError(
            f"the multicast mask {mask:#x} names blocks beyond the {len(blocks)} of the cluster",
            site,
            g.thread(lane),
        )
    return [block for rank, block in enumerate(blocks) if mask >> rank & 1]


def _check_start(g: Group, tensor: TensorMap, start: Start, lane: int, site: Site) -> None:
    if start[0] // tensor.packing * tensor.itemsize % _PIECE == 0 and min(start) >= 0:
        return
    raise SimulationError(
        f"a TMA store begins at {start}, the contiguous mode first",
        site,
        g.thread(lane),
        hint="no coordinate may be negative, and the first must be a multiple of "
        f"{_PIECE // tensor.itemsize} elements ({_PIECE} bytes)",
    )


def _check_place(g: Group, tensor: TensorMap, at: int, lane: int, site: Site) -> None:
    wanted = _ALIGNMENTS[tensor.swizzle]
    if at % 128:
        raise MemoryAccessError(
            f"a TMA box at shared address {at:#x} is not aligned to 128 bytes",
            site,
            g.thread(lane),
            hint=f"allocate it with byte_alignment={wanted}",
            notes=((f"it is in `{g.shared_variable(at)[0]}`", None),),
        )
    size = int(np.prod(tensor.box)) * tensor.shared_itemsize
    if at < g.shared.base or at + size > g.shared.end:
        raise MemoryAccessError(
            f"a TMA box of {size} bytes at {at:#x} reaches beyond the block's shared memory",
            site,
            g.thread(lane),
            notes=((f"shared memory ends at {g.shared.end:#x}", None),),
        )


@functools.lru_cache(maxsize=256)
def _places(tensor: TensorMap, at: int) -> Any:
    """The shared address of each byte of a box, `(items, their bytes in shared memory)`."""
    count = int(np.prod(tensor.box))
    linear = at + np.arange(count * tensor.shared_itemsize, dtype=np.int64)
    bits, base, shift = SWIZZLE_BITS[tensor.swizzle]
    swizzled = linear ^ ((linear >> base + shift & (1 << bits) - 1) << base)
    return swizzled.reshape(count, tensor.shared_itemsize)


def _padded(tensor: TensorMap, box: Any) -> Any:
    """A box with the bytes that nobody uses behind items of narrow elements."""
    missing = tensor.shared_itemsize - tensor.itemsize
    return np.pad(box, ((0, 0), (0, missing)), constant_values=0xA5) if missing else box


def _elements(
    g: Group,
    tensor: TensorMap,
    start: Start,
    lane: int,
    site: Site,
    whole_pieces: bool = False,
) -> tuple[Any, Any]:
    """Byte offsets of a box's elements from the tensor's beginning, and which of them are inside of
    it, `(elements,)`; with `whole_pieces`, also those in 16 bytes that begin inside.
    """
    if len(start) != tensor.rank:
        raise SimulationError(
            f"{len(start)} coordinates for a tensor map of {tensor.rank} modes",
            site,
            g.thread(lane),
        )
    if tensor.pixels is not None:
        return im2col.elements(g, tensor, start, lane, site)
    offset: Any = np.zeros(1, np.int64)
    inside: Any = np.ones(1, np.bool_)
    if start[0] % tensor.packing:
        raise SimulationError(
            f"a TMA copy of narrow elements begins at {start[0]}, no multiple of {tensor.packing}",
            site,
            g.thread(lane),
        )
    start = (start[0] // tensor.packing, *start[1:])
    for mode, first in enumerate(start):
        if isinstance(first, tuple):
            index = np.array(first, np.int64)
        else:
            index = first + np.arange(tensor.box[mode], dtype=np.int64)
            index = index * tensor.element_strides[mode] if mode else index
        extent = tensor.extents[mode]
        if whole_pieces and mode == 0:
            unit = _PIECE // tensor.itemsize
            extent = -(-extent // unit) * unit
        here = (index >= 0) & (index < extent)
        offset = (offset[None, :] + index[:, None] * tensor.strides[mode]).ravel()
        inside = (inside[None, :] & here[:, None]).ravel()
    return offset, inside


def _global_bytes(
    g: Group, tensor: TensorMap, offset: Any, lane: int, site: Site, verb: str
) -> tuple[Any, Any]:
    """The segment of global memory, and byte indices into it, `(elements, itemsize)`."""
    low, high = int(offset.min()), int(offset.max()) + tensor.itemsize
    segment = g.memory.find(tensor.address + low)
    if segment is None or tensor.address + high > segment.end:
        at = f"the tensor at {tensor.address:#x}"
        message = f"a TMA {verb} reaches outside of its array: bytes {low} to {high} of {at}"
        hint = _beyond_the_extent(tensor) if verb == "store" else None
        if g.memory.find(tensor.address) is None:
            message, hint = f"a TMA {verb} of {at}, which belongs to no argument", NO_ARGUMENT
        raise MemoryAccessError(message, site, g.thread(lane), hint)
    first = tensor.address - segment.base
    return segment, (offset + first)[:, None] + np.arange(tensor.itemsize)


def _beyond_the_extent(tensor: TensorMap) -> str | None:
    """A hint why a store that is clipped at the tensor's extents may still be too long."""
    unit, extent = _PIECE // tensor.itemsize, tensor.extents[0]
    if extent % unit == 0:
        return None
    return (
        f"it acts on whole {_PIECE} bytes, {unit} elements, and the contiguous extent of {extent} "
        "ends within them: give its last row room for them"
    )


def _read_global(g: Group, tensor: TensorMap, start: Start, lane: int, site: Site) -> Any:
    offset, inside = _elements(g, tensor, start, lane, site)
    box = np.zeros((offset.size, tensor.itemsize), np.uint8)
    if inside.any():
        segment, index = _global_bytes(g, tensor, offset[inside], lane, site, "load")
        note_load(g, segment, index[:, 0], tensor.itemsize, site, lane)
        box[inside] = segment.raw[index]
    return box


def _write_global(
    g: Group,
    tensor: TensorMap,
    start: Start,
    lane: int,
    site: Site,
    reduction: str | None,
    box: Any,
) -> None:
    offset, inside = _elements(g, tensor, start, lane, site, whole_pieces=True)
    if not inside.any():
        return
    segment, index = _global_bytes(g, tensor, offset[inside], lane, site, "store")
    if not segment.writable:
        raise MemoryAccessError(
            f"write to `{segment.name}`, which is read-only", site, g.thread(lane)
        )
    values = box[inside]
    if reduction is not None:
        dtype = _DTYPES[tensor.data_type]
        before = np.ascontiguousarray(segment.raw[index]).view(dtype)
        after = _REDUCTIONS[reduction](before, np.ascontiguousarray(values).view(dtype))
        values = after.astype(dtype).view(np.uint8)
    segment.raw[index] = values
    g.launch.stores += 1


def _check_reduction(
    g: Group, tensor: TensorMap, reduction: str | None, lane: int, site: Site
) -> None:
    name = TYPE_NAMES[tensor.data_type] if tensor.data_type < len(TYPE_NAMES) else "narrow floats"
    if reduction is not None and name not in REDUCIBLE[reduction]:
        raise SimulationError(
            f"the TMA unit has no reduction `{reduction}` of {name}", site, g.thread(lane)
        )


# By the number of a tensor map's data type.
_DTYPES = tuple(
    np.dtype(ml_dtypes.bfloat16 if name == "BFloat16" else name.lower().removeprefix("t"))
    for name in TYPE_NAMES
)

_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "inc": lambda old, limit: np.where(old >= limit, 0, old + 1),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
