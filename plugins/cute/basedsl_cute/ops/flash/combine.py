"""The results of blocks that shared the keys of a query, joined into one."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch

ROWS = 4  # of a block: a warp has one


@cute.kernel
def combine_kernel(
    parts: cute.Tensor,
    logs: cute.Tensor,
    out: cute.Tensor,
    lse,  # a tensor or None
    splits: cute.Constexpr,
):
    thread = arch.thread_idx()[0]
    tile, head, batch = arch.block_idx()
    row, lane = tile * ROWS + thread // arch.WARP_SIZE, thread % arch.WARP_SIZE
    batches = out.shape[3]
    if row < out.shape[0]:
        largest = -cute.Float32.inf
        for s in cute.range(splits, unroll=1):
            largest = arch.fmax(largest, logs[row, head, s * batches + batch])
        base = cute.where(largest == -cute.Float32.inf, 0.0, largest)
        total = cute.Float32(0.0)
        for s in cute.range(splits, unroll=1):
            total += cute.math.exp(logs[row, head, s * batches + batch] - base)
        nothing = total == 0.0
        inverse = cute.where(nothing, 0.0, 1.0 / cute.where(nothing, 1.0, total))
        if cute.const_expr(lse is not None):
            if lane == 0:
                log = base + cute.math.log(cute.where(nothing, 1.0, total))
                lse[row, head, batch] = cute.where(nothing, -cute.Float32.inf, log)
        for column in cute.range(lane, out.shape[1], arch.WARP_SIZE, unroll=1):
            value = cute.Float32(0.0)
            for s in cute.range(splits, unroll=1):
                weight = cute.math.exp(logs[row, head, s * batches + batch] - base)
                value += weight * inverse * parts[row, column, head, s * batches + batch]
            out[row, column, head, batch] = out.element_type(value)


@cute.jit
def combine(
    parts: cute.Tensor,
    logs: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    splits: cute.Constexpr,
    stream: cute.Constexpr = None,
):
    """Join `parts` (queries, head, heads, splits x batches), results of softmax over parts of the
    keys, with `logs` (queries, heads, splits x batches), the logarithms of their sums, into `out`
    (queries, head, heads, batches) and `lse` (queries, heads, batches) if given.
    """
    grid = (cute.ceil_div(out.shape[0], ROWS), out.shape[2], out.shape[3])
    combine_kernel(parts, logs, out, lse, splits).launch(
        grid=grid, block=(ROWS * arch.WARP_SIZE, 1, 1), stream=stream
    )
