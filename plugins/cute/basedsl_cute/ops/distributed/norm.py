"""All-reduce with what follows it in a transformer layer: the residual and RMSNorm, row by row."""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.distributed.exchange import (
    address_of,
    end_turns,
    fragment_of,
    load_chunk,
    push_fragment,
    push_to_all,
    sum_chunks,
    wait_for_peers,
)
from basedsl_cute.ops.distributed.lamport_norm import lamport_norm_kernel
from basedsl_cute.ops.distributed.norm_row import NormArrays, write_norm


@cute.kernel
def norm_kernel(
    arrays: NormArrays,
    w: Any,
    rows: cute.Int32,
    count: cute.Int32,
    epsilon: cute.Float32,
    plan: cute.Constexpr,
):
    """Add the sum of all ranks' `x` to `residual`, and write its RMSNorm times `weight` to `y`.

    A row has `count` vectors, at most a chunk; a block takes one row at a time.
    """
    x, residual = arrays.x, arrays.residual
    block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
    turn = w.signals.counter(block)
    push_to_all(address_of(x, block * count, plan), count, w, turn, plan)
    ahead = fragment_of(plan)
    if block + blocks < rows:
        load_chunk(address_of(x, (block + blocks) * count, plan), count, ahead, plan)
    for row in range(block, rows, blocks):
        # The next row was loaded in the turn before, and the one after that is loaded meanwhile.
        if row + blocks < rows:
            push_fragment(ahead, count, w, turn + 1, plan)
            if row + 2 * blocks < rows:
                load_chunk(address_of(x, (row + 2 * blocks) * count, plan), count, ahead, plan)
        before = fragment_of(plan)
        before.fill(0)
        load_chunk(address_of(residual, row * count, plan), count, before, plan)
        wait_for_peers(w, turn)
        total = fragment_of(plan, cute.Float32)
        sum_chunks(address_of(x, row * count, plan), count, w, turn, total, plan)
        write_norm(total, before, arrays, row, count, epsilon, plan)
        turn += 1
    end_turns(w, turn)


@cute.jit
def all_reduce_norm(
    x: cute.Tensor,
    residual: cute.Tensor,
    weight: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    rows: cute.Int32,
    count: cute.Int32,
    epsilon: cute.Float32,
    blocks: cute.Int32,
    stream: cute.Int64,
    plan: cute.Constexpr,
    width: cute.Constexpr,
):
    """Launch `norm_kernel` on flat tensors; or `lamport_norm_kernel`, with a block for each row, if
    `width` is that of the buffers.
    """
    arrays, on = NormArrays(x, residual, weight, y), cute.Stream(stream.ir_value())
    if cute.const_expr(width is not None):
        lamport_norm_kernel(arrays, w, rows, count, epsilon, plan, width).launch(
            grid=rows, block=plan.threads, stream=on, min_blocks_per_mp=1
        )
    else:
        # Two resident blocks hide each other's waits, where their registers allow it.
        fits = plan.unroll * plan.vector_bytes <= 64
        norm_kernel(arrays, w, rows, count, epsilon, plan).launch(
            grid=blocks,
            block=plan.threads,
            stream=on,
            min_blocks_per_mp=min(2, 1024 // plan.threads) if fits else 1,
        )
