"""Loads and stores of a group's lanes: gather and scatter through NumPy views, with every check.

The fast path guesses the segment (from the argument the pointer comes from, or where the same op
went last) and checks bounds and alignment with two reductions. An access that fails them takes the
slow path, which sorts lanes by segment and finds the lane to blame.

Addresses are int64, `(lanes,)`; values are `(lanes,)`, or `(n, ..., lanes)` for vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.affine import Affine
from basedsl_cute.sim.errors import (
    MemoryAccessError,
    Note,
    Thread,
    UninitializedReadError,
    extent_note,
)
from basedsl_cute.sim.machine import affine_access, shadow_order
from basedsl_cute.sim.machine import poison as poisons
from basedsl_cute.sim.machine import races as race_checks
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.guards import check_guards
from basedsl_cute.sim.machine.memory import (
    CLUSTER_SHIFT,
    LOCAL_WINDOW,
    NO_ARGUMENT,
    SHARED_WINDOW,
    WRITTEN,
    Segment,
)
from basedsl_cute.sim.machine.poison import Origin, Poison
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.shadow_memory import ShadowMemory
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.machine.word_history import (
    PLAIN_READ,
    PLAIN_WRITE,
    STRONG_READ,
    STRONG_WRITE,
)

CLUSTER_SPACE = 7  # LLVM's NVPTX address space "shared cluster"
_U64 = np.dtype(np.uint64)
_any_bit = np.bitwise_or.reduce
_every_bit = np.bitwise_and.reduce
_highest = np.maximum.reduce


def load_memory(g: Group, a: MemoryAccess, address: Any, m: Mask) -> Any:
    """The values that the lanes in `m` read at `address`; anything in the other lanes. Raises
    MemoryAccessError, UninitializedReadError and RaceError.
    """
    if type(address) is Affine:
        got = affine_access.load(g, a, address, m)
        if got is not None:
            return got
        address = address.dense
    if m is not None:  # masked lanes read what the first active lane reads
        address = np.where(m, address, address[m.argmax()])
    segment = _guess(g, a)
    if segment is not None and is_inside(a, segment, address):
        return _read(g, a, segment, address - segment.base, m)
    out = None
    for home, local, chosen in _homes(g, a, address, m, None):
        first = local[chosen.argmax()]
        got = _read(g, a, home, np.where(chosen, local, first) - home.base, chosen)
        out = got if out is None else np.where(chosen, got, out)
    return out


def store_memory(g: Group, a: MemoryAccess, address: Any, value: Any, m: Mask) -> None:
    """Write `value` (per lane, or uniform) at `address` for the lanes in `m`. Where lanes write to
    the same place the highest lane wins. Raises MemoryAccessError and RaceError.
    """
    if type(address) is Affine:
        if affine_access.store(g, a, address, value, m):
            return
        address = address.dense
    who = None
    if m is not None:
        who = np.flatnonzero(m)
        address = address[who]
        if value.ndim and value.shape[-1] == m.size:
            value = value[..., who]
    segment = _guess(g, a)
    if segment is not None and is_inside(a, segment, address):
        _write(g, a, segment, address - segment.base, value, who)
        return
    for home, local, chosen in _homes(g, a, address, None, who):
        part = np.flatnonzero(chosen)
        some = value[..., part] if value.ndim and value.shape[-1] == chosen.size else value
        lanes = part if who is None else who[part]
        _write(g, a, home, local[part] - home.base, some, lanes)


def load_uniform(g: Group, a: MemoryAccess, address: Any, m: Mask) -> Any:
    """The value at one address for all lanes: a scalar, or a vector `(n, ..., 1)`. Raises as
    `load_memory` does.
    """
    segment = _guess(g, a)
    size = a.dtype.itemsize
    if segment is not None and g.races is None and segment.written is None:
        at = int(address)
        offset = at - segment.base
        inside = 0 <= offset <= segment.size - a.nbytes and not at & (a.low_bits)
        if inside and not offset % size:
            start = offset // size
            view = segment.view(a.dtype)
            if not a.shape:
                return view[start] != 0 if a.boolean else view[start]
            got = view[start : start + a.count].copy()
            got = got != 0 if a.boolean else got
            return got.reshape(*a.shape, 1)
    got = load_memory(g, a, np.full(g.lanes, address), m)
    lane = 0 if m is None else int(m.argmax())
    if g.poison is not None:
        mask = g.poison.mask
        own = mask[..., lane : lane + 1] if a.shape else mask[lane]
        g.poison = poisons.moved(own, g.poison)
    return got[..., lane : lane + 1] if a.shape else got[lane]


def locate_atomic(
    g: Group, a: MemoryAccess, address: Any, who: Any
) -> list[tuple[Segment, Any, Any, Any]]:
    """Find what an atomic of the lanes `who` acts on: segments, the addresses there, the lanes that
    go to each, and their indices into the segment's view. The checks take it as a read and a write,
    and raise as those do.
    """
    out = []
    for segment, local, chosen in _homes(g, a, address, None, who):
        lanes = who[chosen]
        offset = local[chosen] - segment.base
        if g.races is not None:
            _note_atomic(g, a, segment, offset, lanes)
        index = _index(g, a, segment, offset, lanes)
        if segment.written is not None:
            written = segment.written_view(a.dtype.itemsize).take(index)
            if (written != -1).any():
                _check_written(g, a, segment, offset, written, None, lanes)
        out.append((segment, local[chosen], lanes, index))
    return out


def check_access(g: Group, a: MemoryAccess, address: Any, m: Mask) -> None:
    """Raise MemoryAccessError for an access that is to happen later."""
    who = None
    if m is not None:
        who = np.flatnonzero(m)
        address = address[who]
    segment = _guess(g, a)
    if segment is None or not is_inside(a, segment, address):
        _homes(g, a, address, None, who)


def store_shared_bytes(g: Group, a: MemoryAccess, address: Any, data: Any, lanes: Any) -> None:
    """Store bytes, `(count, lanes)`, at shared addresses of `lanes`, past the race check."""
    index = _byte_index(g, a, g.shared, address - g.shared.base, lanes)
    g.shared.raw[index] = data.T
    if g.shared.written is not None:
        g.shared.written[index] = WRITTEN


# Segments of addresses ----------------------------------------------------------------------------


def _guess(g: Group, a: MemoryAccess) -> Segment | None:
    if a.space == 3:
        return g.shared
    if a.space == 5:
        return g.local
    if a.root is not None:
        return g.roots[a.root]
    return g.recent.get(a)


def is_inside(a: MemoryAccess, segment: Segment, address: Any) -> bool:
    """True if accesses at all addresses are aligned and in a segment."""
    if a.low_bits and _any_bit(address) & a.low_bits:
        return False
    return bool(_highest((address - segment.base).view(_U64)) <= segment.size - a.nbytes)


def _homes(
    g: Group, a: MemoryAccess, address: Any, m: Mask, who: Any
) -> list[tuple[Segment, Any, Any]]:
    """The segments of the lanes' addresses: each with the addresses in it, and which lanes they
    are. `who` numbers the lanes in `address`. Raises the error of the first lane whose address is
    in no segment.
    """
    left = np.ones(address.size, np.bool_) if m is None else m.copy()
    out = []
    while left.any():
        lane = int(left.argmax())
        at = int(address[lane])
        blamed = lane if who is None else int(who[lane])
        segment, shift = _home(g, a, at, blamed)
        if at & (a.low_bits):
            _misaligned(g, a, at - shift, segment, blamed)
        local = address - shift
        if segment is None or not 0 <= at - shift - segment.base <= segment.size - a.nbytes:
            raise _out_of_bounds(g, a, at - shift, segment, blamed)
        offset = (local - segment.base).view(_U64)
        chosen = left & (offset <= np.uint64(segment.size - a.nbytes))
        if a.align > 1:
            chosen &= (local & (a.low_bits)) == 0
        out.append((segment, local, chosen))
        left &= ~chosen
    if len(out) == 1 and out[0][0].kind == "global":
        g.recent[a] = out[0][0]
    return out


def _home(g: Group, a: MemoryAccess, at: int, lane: int) -> tuple[Segment | None, int]:
    """The segment of one address, and what to subtract to make it an address in that segment."""
    if a.space == 3:
        return g.shared, 0
    if a.space == 5:
        return g.local, 0
    if a.space == 0 and at >= LOCAL_WINDOW:
        return g.local, 0
    if a.space == 0 and at >= SHARED_WINDOW:
        return g.shared, SHARED_WINDOW
    if a.space == CLUSTER_SPACE:
        return _peer(g, a, at, lane)
    if a.root is not None:
        first = g.roots[a.root]
        for segment in g.aliases[a.root]:
            if segment.base <= at <= segment.end - a.nbytes:
                return segment, 0
        return first, 0
    return g.memory.find(at), 0


def _peer(g: Group, a: MemoryAccess, at: int, lane: int) -> tuple[Segment, int]:
    """The shared memory that an address of the cluster means: the block's own if it has no rank."""
    rank = at >> CLUSTER_SHIFT
    if not rank:
        return g.shared, 0
    blocks = g.block.cluster.blocks
    if rank > len(blocks):
        raise MemoryAccessError(
            f"{_access(a)} in shared memory of block {rank - 1} of {len(blocks)} of the cluster",
            a.site,
            g.thread(lane),
            hint=f"ranks in this cluster go from 0 to {len(blocks) - 1}",
        )
    return blocks[rank - 1].shared, rank << CLUSTER_SHIFT


def _shadow_of(g: Group, segment: Segment) -> ShadowMemory | None:
    """The shadow of a segment if it is shared memory of which races are checked, else None."""
    if g.shadow is None or segment.kind != "shared" or segment is g.shared:
        return g.shadow if segment.kind == "shared" else None
    return next(block.shadow for block in g.block.cluster.blocks if block.shared is segment)


# What the race check is told ----------------------------------------------------------------------


def _note_read(g: Group, a: MemoryAccess, segment: Segment, offset: Any, m: Mask) -> None:
    shadow = _shadow_of(g, segment)
    if shadow is not None:
        race_checks.check_read(shadow, g, a, offset, m)
        if a.strong:
            shadow_order.synchronise(shadow, g, a, offset if m is None else offset[m], False)
        return
    if segment.kind == "local":
        return
    who = None if m is None else np.flatnonzero(m)
    local = _offset(g, segment, offset, None)
    if who is not None:
        local = local[who]
    if g.launch.guards:
        check_guards(g, a, segment, local, who)
    kind = STRONG_READ if a.strong else PLAIN_READ
    g.races.record(g, a, segment, local, who, kind, None)
    if a.strong:
        lanes = np.arange(g.lanes) if who is None else who
        g.races.synchronise(g, a, segment, local, lanes, False)


def _note_write(
    g: Group, a: MemoryAccess, segment: Segment, offset: Any, value: Any, who: Any
) -> None:
    shadow = _shadow_of(g, segment)
    if shadow is not None:
        race_checks.check_write(shadow, g, a, offset, who)
        if a.strong:
            shadow_order.synchronise(shadow, g, a, offset, True)
        return
    if segment.kind == "local":
        return
    local = _offset(g, segment, offset, who)
    if g.launch.guards:
        check_guards(g, a, segment, local, who)
    kind = STRONG_WRITE if a.strong else PLAIN_WRITE
    g.races.record(g, a, segment, local, who, kind, value)
    if a.strong:
        lanes = np.arange(g.lanes) if who is None else who
        g.races.synchronise(g, a, segment, local, lanes, True)


def _note_atomic(g: Group, a: MemoryAccess, segment: Segment, offset: Any, lanes: Any) -> None:
    shadow = _shadow_of(g, segment)
    if shadow is not None:
        race_checks.check_write(shadow, g, a, offset, lanes)
        return
    if segment.kind != "local":
        local = _offset(g, segment, offset, lanes)
        if g.launch.guards:
            check_guards(g, a, segment, local, lanes)
        g.races.record(g, a, segment, local, lanes, STRONG_WRITE, None)


def release_atomic(
    g: Group, a: MemoryAccess, segment: Segment, address: Any, lanes: Any, wrote: Any
) -> None:
    """Tell the race check what atomics of `lanes` release and acquire; `wrote` says which wrote."""
    if g.races is None or segment.kind == "local":
        return
    shadow = _shadow_of(g, segment)
    if shadow is not None:
        shadow_order.synchronise(shadow, g, a, address - segment.base, wrote)
        return
    local = _offset(g, segment, address - segment.base, lanes)
    g.races.synchronise(g, a, segment, local, lanes, wrote)


def shared_offset(g: Group, address: Any, lanes: Any) -> Any:
    """Offsets of shared addresses of `lanes` from the beginning of the first block's memory."""
    return _offset(g, g.shared, address - g.shared.base, lanes)


def _offset(g: Group, segment: Segment, offset: Any, who: Any) -> Any:
    """Offsets from the beginning of the first copy of a segment."""
    if segment.stride:
        copies = g.copy_offset(segment, who)
        if copies is not None:
            return offset + copies
    return offset


# Reading and writing in one segment ------------------------------------------------------------


def _index(g: Group, a: MemoryAccess, segment: Segment, offset: Any, who: Any) -> Any:
    """Element indices into the segment's view: `(lanes,)`, or `(n, lanes)` for vectors."""
    if segment.stride:
        copies = g.copy_offset(segment, who)
        if copies is not None:
            offset = offset + copies
    index = offset >> a.shift
    return index + a.rows if a.shape else index


def _byte_index(g: Group, a: MemoryAccess, segment: Segment, offset: Any, who: Any) -> Any:
    if segment.stride:
        copies = g.copy_offset(segment, who)
        if copies is not None:
            offset = offset + copies
    return offset[:, None] + np.arange(a.nbytes)


def _odd(a: MemoryAccess, segment: Segment) -> bool:
    """True when elements do not lie at multiples of their size from the segment's base."""
    size = a.dtype.itemsize
    return bool(segment.base & (size - 1)) or a.align < size


def _read(g: Group, a: MemoryAccess, segment: Segment, offset: Any, m: Mask) -> Any:
    if a.strong and g.launch.member is not None:
        g.polled = segment.base + int(offset[0 if m is None else m.argmax()])
    if g.races is not None:
        _note_read(g, a, segment, offset, m)
    if _odd(a, segment):
        bytes_ = segment.raw[_byte_index(g, a, segment, offset, None)]
        got = bytes_.view(a.dtype).T if a.shape else bytes_.view(a.dtype)[:, 0]
    else:
        index = _index(g, a, segment, offset, None)
        if segment.written is not None:
            written = segment.written_view(a.dtype.itemsize).take(index)
            if _every_bit(written, axis=None) != -1:
                _check_written(g, a, segment, offset, written, m)
        got = segment.view(a.dtype).take(index)
    if a.boolean:
        got = got != 0
    return got.reshape(*a.shape, -1) if len(a.shape) > 1 else got


def _write(g: Group, a: MemoryAccess, segment: Segment, offset: Any, value: Any, who: Any) -> None:
    if not segment.writable:
        lane = 0 if who is None else int(who[0])
        raise MemoryAccessError(
            f"write to `{segment.name}`, which is read-only",
            a.site,
            g.thread(lane),
            hint="pass a copy that may be written; arrays of JAX are immutable",
        )
    g.launch.stores += 1
    if g.races is not None:
        _note_write(g, a, segment, offset, value, who)
    if a.boolean:
        value = value.astype(np.uint8)
    if a.shape:
        value = value.reshape(a.count, value.shape[-1])
    if _odd(a, segment):
        value = np.broadcast_to(value, (*value.shape[:-1], offset.size))
        bytes_ = np.ascontiguousarray(value.T).view(np.uint8).reshape(offset.size, a.nbytes)
        index = _byte_index(g, a, segment, offset, who)
        segment.raw[index] = bytes_
        if segment.written is not None:
            segment.written[index] = WRITTEN
        return
    index = _index(g, a, segment, offset, who)
    segment.view(a.dtype)[index] = value
    if segment.written is not None:
        segment.written_view(a.dtype.itemsize)[index] = -1


# Errors ---------------------------------------------------------------------------------


def _check_written(
    g: Group, a: MemoryAccess, segment: Segment, offset: Any, written: Any, m: Mask, who: Any = None
) -> None:
    """Leave the poison of a read of what is not written; report it if nobody follows it."""
    if a.keeps:
        return
    wrong = written != -1
    bad = wrong.any(axis=0) if a.shape else wrong
    if m is not None:
        bad = bad & m
    if not bad.any():
        return
    lane = int(bad.argmax())
    thread = g.thread(lane if who is None else int(who[lane]))
    found = _origin(g, a, segment, int(offset[lane]), thread)
    if not a.spreads:
        error = UninitializedReadError(found.message, found.site, thread, found.hint, found.notes)
        report(g.launch, "uninitialized", error)
        return
    mask = wrong if m is None else wrong & m
    mask = mask.reshape(*a.shape, -1) if len(a.shape) > 1 else mask
    g.poison = poisons.join(g.poison, Poison(mask, found))


def _origin(g: Group, a: MemoryAccess, segment: Segment, offset: int, thread: Thread) -> Origin:
    place, extent = _place(g, a, segment, offset)
    first = offset + (int(g.copy_offset(segment)[0]) if segment.kind == "local" else 0)
    stored = segment.kind != "local" and g.launch.spoiled.get(segment)
    if stored:
        after = segment.written[first : first + a.nbytes]
        if (after == poisons.STORED).any():
            notes = (*stored.notes, (f"it came here by way of {place}", a.site.span))
            return Origin(stored.message, stored.site, stored.where, stored.hint, notes)
    what = "a local array" if segment.kind == "local" else "shared memory"
    hint = "store to it first, and put a barrier between the store and this read"
    if segment.kind == "local":
        hint = "set every element before it is read: fill(0), or a loop over all of it"
    message = f"read of {what} that no thread has written, at {place}"
    return Origin(message, a.site, thread, hint, (extent,))


def spoil_memory(g: Group, a: MemoryAccess, address: Any, poison: Poison, m: Mask) -> None:
    """Let what the lanes of `m` have just stored at `address` count as not written where it was
    poisoned; in global memory, report it.
    """
    lanes = np.arange(g.lanes) if m is None else np.flatnonzero(m)
    shape = (*a.shape, g.lanes)
    mask = poisons.full(poison, shape).reshape(-1, g.lanes)
    lanes = lanes[mask.any(axis=0)[lanes]]
    if not lanes.size:
        return
    for home, local, chosen in _homes(g, a, address[lanes], None, lanes):
        some = lanes[chosen]
        if home.kind == "global":
            active = np.zeros(g.lanes, np.bool_)
            active[some] = True
            poisons.use(g, poison, active, f"is stored to `{home.name}`", a.site)
            continue
        home.resume_writes()
        if home.written is not None:
            index = _byte_index(g, a, home, local[chosen] - home.base, some)
            marked = np.repeat(mask[:, some].T, a.dtype.itemsize, axis=1)
            home.written[index[marked]] = poisons.STORED
            g.launch.spoiled[home] = poison.origin


def _place(g: Group, a: MemoryAccess, segment: Segment, offset: int) -> tuple[str, Note]:
    """A byte offset in a named memory as text, and a note of the extent of that memory."""
    offset = int(offset)
    if segment.kind == "shared":
        name, start, size = g.shared_variable(offset + segment.base)
        offset = offset + segment.base - start
    elif segment.kind == "local":
        name, start, size = g.launch.memory_map.local_at(offset + segment.base)
        offset = offset + segment.base - start
    else:
        name, size = segment.name or "an unnamed buffer", segment.size
    element = a.dtype.itemsize
    place = f"byte offset {offset} (element {offset // element}) of `{name}`"
    return place, extent_note(f"`{name}`", size, element, a.element)


def _access(a: MemoryAccess) -> str:
    return f"{a.verb} of {a.nbytes} bytes"


def _misaligned(g: Group, a: MemoryAccess, at: int, segment: Segment | None, lane: int) -> None:
    where, notes = f"address {at:#x}", list[Note]()
    if segment is not None:
        where, *notes = _place(g, a, segment, at - segment.base)
    starts = f"it must start at a multiple of {a.align}, and starts {at % a.align} bytes after one"
    raise MemoryAccessError(
        f"misaligned {_access(a)} at {where}",
        a.site,
        g.thread(lane),
        notes=((starts, None), *notes),
        hint=f"let it begin at a multiple of {a.align} bytes, or access narrower elements; what "
        "align() promises must hold",
    )


def _out_of_bounds(
    g: Group, a: MemoryAccess, at: int, segment: Segment | None, lane: int
) -> MemoryAccessError:
    if segment is not None:
        place, extent = _place(g, a, segment, at - segment.base)
        message = f"out-of-bounds {_access(a)} at {place}"
        hint = "compare the index with the extent before: if i < cute.size(x)"
        return MemoryAccessError(message, a.site, g.thread(lane), hint=hint, notes=(extent,))
    if at == 0:
        return MemoryAccessError(f"{_access(a)} through a null pointer", a.site, g.thread(lane))
    message = f"out-of-bounds {_access(a)} at address {at:#x}, which belongs to no argument"
    near = g.memory.nearest(at)
    notes: tuple[Note, ...] = ()
    if near is not None:
        place, extent = _place(g, a, near, at - near.base)
        notes = ((f"the closest is {place}", None), extent)
    return MemoryAccessError(message, a.site, g.thread(lane), hint=NO_ARGUMENT, notes=notes)
