"""All-reduce of small messages without flags: the data itself says that it has arrived.

Buffers begin as words that no data has, `EMPTY`: -0.0, which is pushed as 0.0. A rank pushes its
vectors to all peers and reads its own buffers until no word is empty (L. Lamport, "Time, clocks,
and the ordering of events in a distributed system": nobody waits for more than the messages). Each
launch fills the next buffer and makes the one after that empty, of what was there before: a peer
fills it in the next but one launch, when it has seen this rank's next message. Three would do; of
four the counter can wrap around. A block takes one turn of each launch.

    buffers   [block, turn % 4, source]   of threads x 16 bytes
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.distributed.signals import now
from basedsl_cute.ops.distributed.exchange import (
    address_of,
    end_turns,
    fragment_of,
    rounded,
    vectors_at,
)

BUFFERS = 4
EMPTY = 0x80000000
_WORDS = 4  # of a vector


def buffer_bytes(blocks: int, ranks: int, threads: int) -> int:
    """Return the bytes of the buffers of one of `ranks` ranks."""
    return blocks * BUFFERS * ranks * threads * 16


def _place(w: Any, rank: Any, turn: Any, slot: Any, source: Any, width: int) -> Any:
    """Return the address of this thread's vector of `source` in buffers `slot` of `rank`, which
    have `width` vectors.
    """
    number = (slot * BUFFERS + (turn % BUFFERS).to(cute.Int32)) * w.num_ranks
    vector = (number + source) * width + arch.thread_idx()[0] % width
    return w.peer(rank).iterator.toint() + cute.Int64(vector) * 16


def _store_words(address: Any, words: Any) -> None:
    arch.inline_ptx("st.relaxed.sys.global.v4.b32 [$0], {$1, $2, $3, $4};", [address, *words], ())


def _load_words(address: Any) -> Any:
    return arch.inline_ptx(
        "ld.relaxed.sys.global.v4.b32 {$0, $1, $2, $3}, [$4];", [address], [cute.Uint32] * _WORDS
    )


@cute.jit
def _arrived(address: Any, w: Any, slot: Any, source: Any):
    """Read the vector at `address` until none of its words is empty."""
    a, b, c, d = _load_words(address)
    waits = cute.Boolean(a == EMPTY or b == EMPTY or c == EMPTY or d == EMPTY)
    if waits:
        begin = now()
        while waits:
            a, b, c, d = _load_words(address)
            waits = cute.Boolean(a == EMPTY or b == EMPTY or c == EMPTY or d == EMPTY)
            if waits:
                waits = cute.Boolean(w.signals.is_patient(begin, source, 0, EMPTY, slot))
    return a, b, c, d


@cute.jit
def push_vector(own: Any, w: Any, turn: Any, slot: Any, width: cute.Constexpr):
    """Push this thread's vector, a fragment, to all peers, through the buffers `slot`."""
    bits = cute.recast_tensor(own, cute.Uint32)
    words = [cute.Uint32(0) if bits[n] == EMPTY else bits[n] for n in range(_WORDS)]
    for n in cute.range_constexpr(_WORDS):
        bits[n] = words[n]
    for step in cute.range_constexpr(1, w.num_ranks):
        peer = (w.rank + step) % w.num_ranks
        _store_words(_place(w, peer, turn, slot, w.rank, width), words)


@cute.jit
def sum_vectors(
    own: Any, total: Any, w: Any, turn: Any, slot: Any, plan: cute.Constexpr, width: cute.Constexpr
):
    """Add all ranks' vectors of this thread in Float32 `total`, in the order of ranks: what was
    pushed from `own`, and the peers' when they arrive.
    """
    for source in cute.range_constexpr(w.num_ranks):
        part = cute.make_rmem_tensor((plan.vector,), plan.dtype)
        got = cute.recast_tensor(part, cute.Uint32)
        if source == w.rank:
            cute.autovec_copy(own, part)
        else:
            arrived = _arrived(_place(w, w.rank, turn, slot, source, width), w, slot, source)
            for n in cute.range_constexpr(_WORDS):
                got[n] = arrived[n]
        value = part.load().to(cute.Float32)
        if cute.const_expr(source > 0):
            value = total.load() + value
        total.store(value)


@cute.jit
def empty_buffers(w: Any, turn: Any, slot: Any, width: cute.Constexpr):
    """Empty this thread's place in the next but one buffers of `slot`: by all threads of a block,
    of which any may have a vector then.
    """
    empty = [cute.Uint32(EMPTY)] * _WORDS
    for source in cute.range_constexpr(w.num_ranks):
        if source != w.rank:
            _store_words(_place(w, w.rank, turn + 2, slot, source, width), empty)


@cute.kernel
def lamport_kernel(x: cute.Tensor, y: cute.Tensor, w: Any, count: cute.Int32, plan: cute.Constexpr):
    """The sum of all ranks' `x`, of `count` vectors: one for each thread of the grid."""
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    turn = w.signals.counter(block)
    i = block * plan.threads + thread
    if i < count:
        own, total = fragment_of(plan), fragment_of(plan, cute.Float32)
        cute.autovec_copy(vectors_at(address_of(x, 0, plan), plan)[None, i], own[None, 0])
        push_vector(own[None, 0], w, turn, block, plan.threads)
        sum_vectors(own[None, 0], total[None, 0], w, turn, block, plan, plan.threads)
        result = rounded(total, plan)
        cute.autovec_copy(result[None, 0], vectors_at(address_of(y, 0, plan), plan)[None, i])
    empty_buffers(w, turn, block, plan.threads)
    end_turns(w, turn + 1)


@cute.jit
def lamport(
    x: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    count: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Int64,
    plan: cute.Constexpr,
):
    """Launch `lamport_kernel` on flat tensors."""
    lamport_kernel(x, y, w, count, plan).launch(
        grid=blocks, block=plan.threads, stream=cute.Stream(stream.ir_value())
    )
