"""A row of an all-reduce that residual and RMSNorm follow, once its sum is in registers."""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.block_sums import block_sums
from basedsl_cute.ops.distributed.exchange import (
    address_of,
    fragment_of,
    load_chunk,
    rounded,
    store_chunk,
)


class NormArrays(NamedTuple):
    """The flat arrays of an all-reduce with residual and norm."""

    x: Any
    residual: Any
    weight: Any
    y: Any


@cute.jit
def write_norm(
    total: Any,
    before: Any,
    arrays: Any,
    row: Any,
    count: Any,
    epsilon: Any,
    plan: cute.Constexpr,
    scale: Any = None,
):
    """Add the residual `before` to the Float32 sums `total` of a row, and write it and its norm.
    `scale` are the weights of this thread, if it has them in registers.
    """
    warps = cute.ceil_div(plan.threads, arch.WARP_SIZE)
    partial = cute.make_tensor(arch.alloc_smem(cute.Float32, warps), cute.make_layout((warps, 1)))
    for u in cute.range_constexpr(plan.unroll):
        if u * plan.threads + arch.thread_idx()[0] < count:
            summed = total[None, u].load() + before[None, u].load().to(cute.Float32)
            total[None, u].store(summed)
        else:
            total[None, u].fill(0.0)
    kept = rounded(total, plan)
    store_chunk(kept, address_of(arrays.residual, row * count, plan), count, plan)
    if cute.const_expr(scale is None):
        # They are in the L1 cache: registers that kept them would cost a resident block.
        scale = fragment_of(plan)
        load_chunk(address_of(arrays.weight, 0, plan), count, scale, plan)
    value = kept.load().to(cute.Float32)
    squares = (value * value).reduce(cute.ReductionOp.ADD, cute.Float32(0.0), 0)
    (squares,) = block_sums((arch.warp_reduction_sum(squares),), partial, warps)
    columns = (count * plan.vector).to(cute.Float32)
    factor = cute.math.rsqrt(squares / columns + epsilon)
    result = fragment_of(plan, cute.Float32)
    value = kept.load().to(cute.Float32)
    result.store(value * factor * scale.load().to(cute.Float32))
    store_chunk(rounded(result, plan), address_of(arrays.y, row * count, plan), count, plan)
