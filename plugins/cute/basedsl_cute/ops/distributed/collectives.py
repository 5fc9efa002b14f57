"""Kernels of the collectives: all-reduce, all-gather, reduce-scatter, all-to-all of equal parts."""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.distributed.exchange import (
    address_of,
    chunk_of,
    end_turns,
    fragment_of,
    load_chunk,
    notify_peers,
    push_parts,
    push_to_all,
    ring_address,
    rounded,
    store_chunk,
    sum_chunks,
    wait_for_peers,
)


@cute.jit
def _push(
    x: Any, chunk: Any, count: Any, w: Any, turn: Any, parts: cute.Constexpr, plan: cute.Constexpr
):
    first = chunk * plan.chunk
    if cute.const_expr(parts):
        push_parts(x, first, count, count - first, w, turn, plan)
    else:
        push_to_all(address_of(x, first, plan), count - first, w, turn, plan)


@cute.kernel
def exchange_kernel(
    x: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    count: cute.Int32,
    parts: cute.Constexpr,
    sums: cute.Constexpr,
    plan: cute.Constexpr,
):
    """One exchange of `count` vectors between any two ranks.

    Each rank sends all of `x` to all others or, with `parts`, its part to each. The chunks that
    arrive are added to `y` with `sums`, else they are the parts of `y` in the order of ranks.
    """
    block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
    turn = w.signals.counter(block)
    chunks = cute.ceil_div(count, plan.chunk)
    _push(x, block, count, w, turn, parts, plan)
    for chunk in range(block, chunks, blocks):
        if chunk + blocks < chunks:
            _push(x, chunk + blocks, count, w, turn + 1, parts, plan)
        wait_for_peers(w, turn)
        first = chunk * plan.chunk
        mine = first
        if cute.const_expr(parts):
            mine = first + w.rank * count
        own, left = address_of(x, mine, plan), count - first
        if cute.const_expr(sums):
            total = fragment_of(plan, cute.Float32)
            sum_chunks(own, left, w, turn, total, plan)
            store_chunk(rounded(total, plan), address_of(y, first, plan), left, plan)
        else:
            for source in cute.range_constexpr(w.num_ranks):
                fragment = fragment_of(plan)
                load_chunk(chunk_of(source, own, w, turn, plan), left, fragment, plan)
                store_chunk(fragment, address_of(y, first + source * count, plan), left, plan)
        turn += 1
    end_turns(w, turn)


@cute.kernel
def two_shot_kernel(
    x: cute.Tensor, y: cute.Tensor, w: Any, count: cute.Int32, plan: cute.Constexpr
):
    """The sum of all ranks' `x`, of `count` vectors: each rank adds chunks of its own, and sends
    the sums to all others.

    Of as many chunks as there are ranks each rank adds one; a block takes two turns for them.
    """
    block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
    turn = w.signals.counter(block)
    ranks = w.num_ranks
    together = ranks * plan.chunk
    for group in range(block, cute.ceil_div(count, together), blocks):
        first = group * together
        for step in cute.range_constexpr(1, ranks):
            peer = (w.rank + step) % ranks
            begin = first + peer * plan.chunk
            fragment = fragment_of(plan)
            load_chunk(address_of(x, begin, plan), count - begin, fragment, plan)
            at = ring_address(w, peer, turn, w.rank, plan)
            store_chunk(fragment, at, count - begin, plan)
        notify_peers(w, turn)
        wait_for_peers(w, turn)
        begin = first + w.rank * plan.chunk
        total = fragment_of(plan, cute.Float32)
        sum_chunks(address_of(x, begin, plan), count - begin, w, turn, total, plan)
        result = rounded(total, plan)
        store_chunk(result, address_of(y, begin, plan), count - begin, plan)
        turn += 1
        for step in cute.range_constexpr(1, ranks):
            peer = (w.rank + step) % ranks
            at = ring_address(w, peer, turn, w.rank, plan)
            store_chunk(result, at, count - begin, plan)
        notify_peers(w, turn)
        wait_for_peers(w, turn)
        for step in cute.range_constexpr(1, ranks):
            source = (w.rank + step) % ranks
            begin = first + source * plan.chunk
            fragment = fragment_of(plan)
            at = ring_address(w, w.rank, turn, source, plan)
            load_chunk(at, count - begin, fragment, plan)
            store_chunk(fragment, address_of(y, begin, plan), count - begin, plan)
        turn += 1
    end_turns(w, turn)


@cute.jit
def exchange(
    x: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    count: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Int64,
    parts: cute.Constexpr,
    sums: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Launch `exchange_kernel` on flat tensors."""
    exchange_kernel(x, y, w, count, parts, sums, plan).launch(
        grid=blocks, block=plan.threads, stream=cute.Stream(stream.ir_value())
    )


@cute.jit
def two_shot(
    x: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    count: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Int64,
    plan: cute.Constexpr,
):
    """Launch `two_shot_kernel` on flat tensors."""
    two_shot_kernel(x, y, w, count, plan).launch(
        grid=blocks, block=plan.threads, stream=cute.Stream(stream.ir_value())
    )
