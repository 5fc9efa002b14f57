"""All-to-all of parts with sizes that only the GPUs know: dispatch and combine of experts."""

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
    ring_address,
    store_chunk,
    wait_for_peers,
)


def _sizes_at(address: Any, ranks: int) -> Any:
    pointer = cute.make_ptr(cute.Int32, address, "gmem", assumed_align=4)
    return cute.make_tensor(pointer, ranks)


@cute.jit
def _exchange_sizes(sizes: Any, w: Any, turn: Any, matrix: Any, plan: cute.Constexpr):
    """Fill `matrix` (source, destination) in shared memory with the rows that all ranks send."""
    ranks = w.num_ranks
    thread = arch.thread_idx()[0]
    if thread < ranks:
        mine = sizes[thread]
        matrix[w.rank, thread] = mine
        for step in cute.range_constexpr(1, ranks):
            peer = (w.rank + step) % ranks
            _sizes_at(ring_address(w, peer, turn, w.rank, plan), ranks)[thread] = mine
    notify_peers(w, turn)
    wait_for_peers(w, turn)
    if thread < ranks:
        for step in cute.range_constexpr(1, ranks):
            source = (w.rank + step) % ranks
            address = ring_address(w, w.rank, turn, source, plan)
            matrix[source, thread] = _sizes_at(address, ranks)[thread]
    arch.sync_threads()


@cute.jit
def _rows_before(matrix: Any, rank: Any, other: Any, sends: cute.Constexpr, ranks: cute.Constexpr):
    """Return the rows that `rank` sends (or gets) to the ranks before `other`."""
    rows = cute.Int32(0)
    for n in cute.range_constexpr(ranks):
        if n < other:
            if cute.const_expr(sends):
                rows += matrix[rank, n]
            else:
                rows += matrix[n, rank]
    return rows


@cute.jit
def _push_rows(x: Any, matrix: Any, chunk: Any, row: Any, w: Any, turn: Any, plan: cute.Constexpr):
    """Push a chunk of the rows for each peer, and tell them."""
    ranks, first = w.num_ranks, chunk * plan.chunk
    for step in cute.range_constexpr(1, ranks):
        peer = (w.rank + step) % ranks
        left = matrix[w.rank, peer] * row - first
        if left > 0:
            begin = _rows_before(matrix, w.rank, peer, True, ranks) * row + first
            fragment = fragment_of(plan)
            load_chunk(address_of(x, begin, plan), left, fragment, plan)
            store_chunk(fragment, ring_address(w, peer, turn, w.rank, plan), left, plan)
    notify_peers(w, turn)


@cute.kernel
def to_all_kernel(
    x: cute.Tensor,
    sizes: cute.Tensor,
    y: cute.Tensor,
    got: cute.Tensor,
    w: Any,
    row: cute.Int32,
    room: cute.Int32,
    plan: cute.Constexpr,
):
    """Send `sizes[p]` rows of `x`, those after the rows for lower ranks, to each rank p.

    The rows that arrive are `y`, in the order of ranks, and `got[p]` says how many rank p has sent.
    Rows beyond the `room` of `y` are not written. A row has `row` vectors.
    """
    block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
    ranks = w.num_ranks
    matrix = cute.make_tensor(
        arch.alloc_smem(cute.Int32, ranks * ranks), cute.make_layout((ranks, ranks))
    )
    turn = w.signals.counter(block)
    _exchange_sizes(sizes, w, turn, matrix, plan)
    turn += 1
    most = cute.Int32(0)
    for source in cute.range_constexpr(ranks):
        for other in cute.range_constexpr(ranks):
            most = cute.max(most, matrix[source, other])
    if block == 0 and arch.thread_idx()[0] < ranks:
        got[arch.thread_idx()[0]] = matrix[arch.thread_idx()[0], w.rank]
    chunks = cute.ceil_div(most * row, plan.chunk)
    if block < chunks:
        _push_rows(x, matrix, block, row, w, turn, plan)
    for chunk in range(block, chunks, blocks):
        if chunk + blocks < chunks:
            _push_rows(x, matrix, chunk + blocks, row, w, turn + 1, plan)
        wait_for_peers(w, turn)
        first = chunk * plan.chunk
        for step in cute.range_constexpr(ranks):
            source = (w.rank + step) % ranks
            begin = _rows_before(matrix, w.rank, source, False, ranks) * row + first
            left = cute.min(matrix[source, w.rank] * row - first, room * row - begin)
            if left > 0:
                mine = _rows_before(matrix, w.rank, w.rank, True, ranks) * row + first
                own = address_of(x, mine, plan)
                fragment = fragment_of(plan)
                load_chunk(chunk_of(source, own, w, turn, plan), left, fragment, plan)
                store_chunk(fragment, address_of(y, begin, plan), left, plan)
        turn += 1
    end_turns(w, turn)


@cute.jit
def to_all(
    x: cute.Tensor,
    sizes: cute.Tensor,
    y: cute.Tensor,
    got: cute.Tensor,
    w: Any,
    row: cute.Int32,
    room: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Int64,
    plan: cute.Constexpr,
):
    """Launch `to_all_kernel`: `x` and `y` flat, `sizes` and `got` of Int32."""
    to_all_kernel(x, sizes, y, got, w, row, room, plan).launch(
        grid=blocks, block=plan.threads, stream=cute.Stream(stream.ir_value())
    )


__all__ = ["to_all"]
