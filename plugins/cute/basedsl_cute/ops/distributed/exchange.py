"""Exchange of chunks between ranks, which the kernels of this folder are made of.

Every block meets the blocks of its number on the other ranks, and works on chunks of its own. A
chunk is pushed: each rank writes it into memory of its peers, then sets its flag there, which the
peer waits for (writes cross a link without waiting for an answer, reads do not). For each block and
source a rank has a ring of `DEPTH` chunks:

    rings   [block, turn % DEPTH, source]   of chunk_bytes

A block pushes at most one turn ahead of the turn that it consumes. So its flag of a turn says that
it has consumed the second turn before, and rings of 4 are never overwritten early: no barrier is
needed. Turns count on from launch to launch in the counter of the block's slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import select
from basedsl_cute import arch

DEPTH = 4
"""Chunks of a ring: what is pushed ahead, being consumed, and perhaps still read by a peer."""


@dataclass(frozen=True)
class ExchangePlan:
    """The static shape of an exchange of elements of `dtype`. A chunk is `threads` x `unroll`
    vectors of `vector` elements, and a ring has room for `chunk_bytes` in each place.
    """

    dtype: Any
    threads: int
    unroll: int
    vector: int
    chunk_bytes: int

    @property
    def chunk(self) -> int:
        """The vectors of a chunk."""
        return self.threads * self.unroll

    @property
    def vector_bytes(self) -> int:
        """The bytes of a vector, and the alignment of all of them."""
        return self.vector * self.dtype.width // 8


def ring_bytes(blocks: int, ranks: int, chunk_bytes: int) -> int:
    """Return the bytes of the rings of one of `ranks` ranks."""
    return blocks * DEPTH * ranks * chunk_bytes


def address_of(x: Any, first: Any, plan: ExchangePlan) -> Any:
    """Return the address of vector `first` of the flat tensor `x`."""
    return x.iterator.toint() + cute.Int64(first) * plan.vector_bytes


def ring_address(w: Any, rank: Any, turn: Any, source: Any, plan: ExchangePlan) -> Any:
    """Return the address of this block's chunk of `source` in the rings of `rank`."""
    place = turn.to(cute.Int32) & (DEPTH - 1)
    place = (arch.block_idx()[0] * DEPTH + place) * w.num_ranks + source
    return w.peer(rank).iterator.toint() + cute.Int64(place) * plan.chunk_bytes


def vectors_at(address: Any, plan: ExchangePlan) -> Any:
    """Return the vectors from an address on, a tensor (elements of a vector, vectors)."""
    pointer = cute.make_ptr(plan.dtype, address, "gmem", assumed_align=plan.vector_bytes)
    return cute.make_tensor(pointer, cute.make_layout((plan.vector, 1 << 24), (1, plan.vector)))


def fragment_of(plan: ExchangePlan, dtype: Any = None) -> Any:
    """Return registers for this thread's vectors of a chunk."""
    return cute.make_rmem_tensor((plan.vector, plan.unroll), dtype or plan.dtype)


@cute.jit
def load_chunk(address: Any, count: Any, fragment: Any, plan: cute.Constexpr):
    """Load this thread's vectors of the chunk at `address`, of which `count` vectors exist."""
    x, thread = vectors_at(address, plan), arch.thread_idx()[0]
    if count >= plan.chunk:
        for u in cute.range_constexpr(plan.unroll):
            cute.autovec_copy(x[None, u * plan.threads + thread], fragment[None, u])
    else:
        for u in cute.range_constexpr(plan.unroll):
            if u * plan.threads + thread < count:
                cute.autovec_copy(x[None, u * plan.threads + thread], fragment[None, u])


@cute.jit
def store_chunk(fragment: Any, address: Any, count: Any, plan: cute.Constexpr):
    """Store this thread's vectors as the chunk at `address`, of which `count` vectors exist."""
    x, thread = vectors_at(address, plan), arch.thread_idx()[0]
    if count >= plan.chunk:
        for u in cute.range_constexpr(plan.unroll):
            cute.autovec_copy(fragment[None, u], x[None, u * plan.threads + thread])
    else:
        for u in cute.range_constexpr(plan.unroll):
            if u * plan.threads + thread < count:
                cute.autovec_copy(fragment[None, u], x[None, u * plan.threads + thread])


@cute.jit
def notify_peers(w: Any, turn: Any):
    """Tell all peers that this block has pushed the chunks of a turn."""
    arch.sync_threads()
    peer = arch.thread_idx()[0]
    if peer < w.num_ranks and peer != w.rank:
        w.signals.notify(peer, turn + 1, arch.block_idx()[0])


@cute.jit
def wait_for_peers(w: Any, turn: Any):
    """Wait until all peers have pushed their chunks of a turn to this block."""
    source = arch.thread_idx()[0]
    if source < w.num_ranks and source != w.rank:
        w.signals.wait(source, turn + 1, arch.block_idx()[0])
    arch.sync_threads()


@cute.jit
def push_to_all(address: Any, count: Any, w: Any, turn: Any, plan: cute.Constexpr):
    """Push the chunk at `address` to every peer, and tell them."""
    fragment = fragment_of(plan)
    load_chunk(address, count, fragment, plan)
    push_fragment(fragment, count, w, turn, plan)


@cute.jit
def push_fragment(fragment: Any, count: Any, w: Any, turn: Any, plan: cute.Constexpr):
    """Push the chunk that is in registers to every peer, and tell them."""
    for step in cute.range_constexpr(1, w.num_ranks):
        peer = (w.rank + step) % w.num_ranks  # each rank begins with another one
        store_chunk(fragment, ring_address(w, peer, turn, w.rank, plan), count, plan)
    notify_peers(w, turn)


@cute.jit
def push_parts(
    x: Any, first: Any, stride: Any, count: Any, w: Any, turn: Any, plan: cute.Constexpr
):
    """Push to each peer the chunk of `x` that is its own, `first` + rank * `stride` vectors from
    the beginning, and tell them.
    """
    for step in cute.range_constexpr(1, w.num_ranks):
        peer = (w.rank + step) % w.num_ranks
        fragment = fragment_of(plan)
        load_chunk(address_of(x, first + peer * stride, plan), count, fragment, plan)
        store_chunk(fragment, ring_address(w, peer, turn, w.rank, plan), count, plan)
    notify_peers(w, turn)


@cute.jit
def chunk_of(source: Any, own: Any, w: Any, turn: Any, plan: cute.Constexpr):
    """Return the address of the chunk of `source`: in this rank's rings, or `own`, of itself."""
    return select(w.rank == source, own, ring_address(w, w.rank, turn, source, plan))


@cute.jit
def sum_chunks(own: Any, count: Any, w: Any, turn: Any, total: Any, plan: cute.Constexpr):
    """Add the chunks of all ranks, this rank's from the address `own`, in Float32 `total`.

    They are added in the order of ranks, so that all ranks get the same bits.
    """
    for source in cute.range_constexpr(w.num_ranks):
        fragment = fragment_of(plan)
        load_chunk(chunk_of(source, own, w, turn, plan), count, fragment, plan)
        value = fragment.load().to(cute.Float32)
        if cute.const_expr(source > 0):
            value = total.load() + value
        total.store(value)


def rounded(total: Any, plan: ExchangePlan) -> Any:
    """Return Float32 registers rounded to the elements' type."""
    if plan.dtype is cute.Float32:
        return total
    result = fragment_of(plan)
    result.store(total.load().to(plan.dtype))
    return result


@cute.jit
def end_turns(w: Any, turn: Any):
    """Keep `turn`, this block's next one, for the next launch, once all its threads are done."""
    arch.sync_threads()
    if arch.thread_idx()[0] == 0:
        w.signals.set_counter(arch.block_idx()[0], turn)
