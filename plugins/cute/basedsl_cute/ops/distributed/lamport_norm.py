"""All-reduce with the residual and RMSNorm for few rows, without flags: see `lamport`.

A block takes one row. Its vectors pass through as many buffers as a thread has vectors: those that
are the block's, and that of its number plus the blocks, and so on.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.distributed.exchange import address_of, fragment_of, load_chunk
from basedsl_cute.ops.distributed.lamport import empty_buffers, push_vector, sum_vectors
from basedsl_cute.ops.distributed.norm import write_norm


@cute.kernel
def lamport_norm_kernel(
    x: cute.Tensor,
    residual: cute.Tensor,
    weight: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    rows: cute.Int32,
    count: cute.Int32,
    epsilon: cute.Float32,
    plan: cute.Constexpr,
):
    """Do what `norm_kernel` does, with a row of `count` vectors in each block."""
    thread, row = arch.thread_idx()[0], arch.block_idx()[0]
    own, before = fragment_of(plan), fragment_of(plan)
    own.fill(0)
    before.fill(0)
    load_chunk(address_of(x, row * count, plan), count, own, plan)
    for u in cute.range_constexpr(plan.unroll):
        if u * plan.threads + thread < count:
            slot = row + u * rows
            push_vector(own[None, u], w, w.signals.counter(slot), slot, plan)
    load_chunk(address_of(residual, row * count, plan), count, before, plan)
    total = fragment_of(plan, cute.Float32)
    for u in cute.range_constexpr(plan.unroll):
        slot = row + u * rows
        turn = w.signals.counter(slot)
        if u * plan.threads + thread < count:
            sum_vectors(own[None, u], total[None, u], w, turn, slot, plan)
        empty_buffers(w, turn, slot, plan)
    write_norm(total, before, residual, weight, y, row, count, epsilon, plan)
    arch.sync_threads()
    if thread < plan.unroll:
        slot = row + thread * rows
        w.signals.set_counter(slot, w.signals.counter(slot) + 1)


@cute.jit
def lamport_norm(
    x: cute.Tensor,
    residual: cute.Tensor,
    weight: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    rows: cute.Int32,
    count: cute.Int32,
    epsilon: cute.Float32,
    stream: cute.Int64,
    plan: cute.Constexpr,
):
    """Launch `lamport_norm_kernel` on flat tensors."""
    lamport_norm_kernel(x, residual, weight, y, w, rows, count, epsilon, plan).launch(
        grid=rows,
        block=plan.threads,
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
    )
