"""All-reduce with the residual and RMSNorm for few rows, without flags: see `lamport`.

A block takes one row, with a vector for each thread as far as 1,024 threads go: a thread reads one
vector after the other until it has arrived. The vectors pass through as many buffers as they fill:
those of the block's number, of that plus the number of rows, and so on.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.distributed.exchange import address_of, fragment_of, load_chunk
from basedsl_cute.ops.distributed.lamport import empty_buffers, push_vector, sum_vectors
from basedsl_cute.ops.distributed.norm_row import NormArrays, write_norm


@cute.kernel
def lamport_norm_kernel(
    arrays: NormArrays,
    w: Any,
    rows: cute.Int32,
    count: cute.Int32,
    epsilon: cute.Float32,
    plan: cute.Constexpr,
    width: cute.Constexpr,
):
    """Do what `norm_kernel` does, with a row of `count` vectors in each block, whose threads are a
    multiple of the buffers' `width`.
    """
    thread, row = arch.thread_idx()[0], arch.block_idx()[0]
    together = plan.threads // width  # buffers that a block fills at once
    own, before, scale = fragment_of(plan), fragment_of(plan), fragment_of(plan)
    own.fill(0)
    before.fill(0)
    load_chunk(address_of(arrays.x, row * count, plan), count, own, plan)
    for u in cute.range_constexpr(plan.unroll):
        if u * plan.threads + thread < count:
            slot = row + (u * together + thread // width) * rows
            push_vector(own[None, u], w, w.signals.counter(slot), slot, width)
    load_chunk(address_of(arrays.residual, row * count, plan), count, before, plan)
    load_chunk(address_of(arrays.weight, 0, plan), count, scale, plan)
    total = fragment_of(plan, cute.Float32)
    for u in cute.range_constexpr(plan.unroll):
        slot = row + (u * together + thread // width) * rows
        turn = w.signals.counter(slot)
        if u * plan.threads + thread < count:
            sum_vectors(own[None, u], total[None, u], w, turn, slot, plan, width)
        empty_buffers(w, turn, slot, width)
    write_norm(total, before, arrays, row, count, epsilon, plan, scale)
    arch.sync_threads()
    if thread < plan.unroll * together:
        slot = row + thread * rows
        w.signals.set_counter(slot, w.signals.counter(slot) + 1)
