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
    Plan,
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


def _place(w: Any, rank: Any, turn: Any, source: Any, plan: Plan) -> Any:
    """Return the address of this thread's vector of `source` in the buffers of `rank`."""
    number = (arch.block_idx()[0] * BUFFERS + (turn % BUFFERS).to(cute.Int32)) * w.num_ranks
    vector = (number + source) * plan.threads + arch.thread_idx()[0]
    return w.peer(rank).iterator.toint() + cute.Int64(vector) * 16


def _store(address: Any, words: Any) -> None:
    arch.inline_ptx("st.relaxed.sys.global.v4.b32 [$0], {$1, $2, $3, $4};", [address, *words], ())


def _load(address: Any) -> Any:
    return arch.inline_ptx(
        "ld.relaxed.sys.global.v4.b32 {$0, $1, $2, $3}, [$4];", [address], [cute.Uint32] * _WORDS
    )


@cute.jit
def _arrived(address: Any, w: Any, source: Any):
    """Read the vector at `address` until none of its words is empty."""
    a, b, c, d = _load(address)
    waits = cute.Boolean(a == EMPTY or b == EMPTY or c == EMPTY or d == EMPTY)
    if waits:
        begin = now()
        while waits:
            a, b, c, d = _load(address)
            waits = cute.Boolean(a == EMPTY or b == EMPTY or c == EMPTY or d == EMPTY)
            if waits:
                slot = arch.block_idx()[0]
                waits = cute.Boolean(w.signals.is_patient(begin, source, 0, EMPTY, slot))
    return a, b, c, d


@cute.kernel
def lamport_kernel(x: cute.Tensor, y: cute.Tensor, w: Any, count: cute.Int32, plan: cute.Constexpr):
    """The sum of all ranks' `x`, of `count` vectors: one for each thread of the grid."""
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    turn = w.signals.counter(block)
    i = block * plan.threads + thread
    if i < count:
        own = fragment_of(plan)
        cute.autovec_copy(vectors_at(address_of(x, 0, plan), plan)[None, i], own[None, 0])
        bits = cute.recast_tensor(own, cute.Uint32)
        words = [cute.Uint32(0) if bits[n] == EMPTY else bits[n] for n in range(_WORDS)]
        for step in cute.range_constexpr(1, w.num_ranks):
            peer = (w.rank + step) % w.num_ranks
            _store(_place(w, peer, turn, w.rank, plan), words)
        total = fragment_of(plan, cute.Float32)
        for source in cute.range_constexpr(w.num_ranks):
            part = fragment_of(plan)
            got = cute.recast_tensor(part, cute.Uint32)
            if source == w.rank:
                for n in cute.range_constexpr(_WORDS):
                    got[n] = words[n]
            else:
                arrived = _arrived(_place(w, w.rank, turn, source, plan), w, source)
                for n in cute.range_constexpr(_WORDS):
                    got[n] = arrived[n]
            value = part.load().to(cute.Float32)
            if cute.const_expr(source > 0):
                value = total.load() + value
            total.store(value)
        empty = [cute.Uint32(EMPTY)] * _WORDS
        for source in cute.range_constexpr(w.num_ranks):
            if source != w.rank:
                _store(_place(w, w.rank, turn + 2, source, plan), empty)
        result = rounded(total, plan)
        cute.autovec_copy(result[None, 0], vectors_at(address_of(y, 0, plan), plan)[None, i])
    end_turns(w, turn + 1)


@cute.jit
def lamport(
    x: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    count: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Stream,
    plan: cute.Constexpr,
):
    """Launch `lamport_kernel` on flat tensors."""
    lamport_kernel(x, y, w, count, plan).launch(grid=blocks, block=plan.threads, stream=stream)
