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
    rounded,
    store_chunk,
    sum_chunks,
    wait_for_peers,
)


@cute.jit
def _sum_of_block(value: Any, partial: Any, threads: cute.Constexpr):
    """Return the sum of `value` over the block's threads; `partial` has a word of each warp."""
    total = arch.warp_reduction_sum(value)
    warps = cute.ceil_div(threads, arch.WARP_SIZE)
    if arch.lane_idx() == 0:
        partial[arch.warp_idx()] = total
    arch.sync_threads()
    result = partial[0]
    for n in cute.range_constexpr(1, warps):
        result += partial[n]
    arch.sync_threads()
    return result


@cute.jit
def write_norm(
    total: Any,
    before: Any,
    residual: Any,
    weight: Any,
    y: Any,
    row: Any,
    count: Any,
    epsilon: Any,
    plan: cute.Constexpr,
):
    """Add the residual `before` to the Float32 sums `total` of a row, and write it and its norm."""
    warps = cute.ceil_div(plan.threads, arch.WARP_SIZE)
    partial = cute.make_tensor(arch.alloc_smem(cute.Float32, warps), warps)
    for u in cute.range_constexpr(plan.unroll):
        if u * plan.threads + arch.thread_idx()[0] < count:
            summed = total[None, u].load() + before[None, u].load().to(cute.Float32)
            total[None, u].store(summed)
        else:
            total[None, u].fill(0.0)
    kept = rounded(total, plan)
    store_chunk(kept, address_of(residual, row * count, plan), count, plan)
    # The weights are in the L1 cache: registers that kept them would cost a resident block.
    scale = fragment_of(plan)
    load_chunk(address_of(weight, 0, plan), count, scale, plan)
    value = kept.load().to(cute.Float32)
    squares = (value * value).reduce(cute.ReductionOp.ADD, cute.Float32(0.0), 0)
    squares = _sum_of_block(squares, partial, plan.threads)
    columns = (count * plan.vector).to(cute.Float32)
    factor = cute.math.rsqrt(squares / columns + epsilon)
    result = fragment_of(plan, cute.Float32)
    value = kept.load().to(cute.Float32)
    result.store(value * factor * scale.load().to(cute.Float32))
    store_chunk(rounded(result, plan), address_of(y, row * count, plan), count, plan)


@cute.kernel
def norm_kernel(
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
    """Add the sum of all ranks' `x` to `residual`, and write its RMSNorm times `weight` to `y`.

    A row has `count` vectors, at most a chunk; a block takes one row at a time.
    """
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
        write_norm(total, before, residual, weight, y, row, count, epsilon, plan)
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
):
    """Launch `norm_kernel` on flat tensors."""
    # Two resident blocks hide each other's waits, where their registers allow it.
    resident = min(2, 1024 // plan.threads) if plan.unroll * plan.vector_bytes <= 64 else 1
    norm_kernel(x, residual, weight, y, w, rows, count, epsilon, plan).launch(
        grid=blocks,
        block=plan.threads,
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=resident,
    )
