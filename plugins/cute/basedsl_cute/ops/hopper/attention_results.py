"""The results of a task of attention on Hopper, written by the threads that have them."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.ampere.attention import AttentionResult, finish_rows
from basedsl_cute.ops.flash.softmax import as_rows


@cute.jit
def write_results(
    softmax,
    sums,
    task,
    tensors,
    walk,
    packing,
    key_group,
    value_scale,
    mma: cute.Constexpr,
    dtype: cute.Constexpr,
    variant: cute.Constexpr,
    lane,
    cfg: cute.Constexpr,
):
    """Write a thread's results of a task (first query, head, batch)."""
    out, lse, sinks, scales = tensors
    row, head, batch = task
    slot = batch if packing is None else packing.query_batch(batch)
    places = (walk.sequence_of(batch), slot, slot, cute.Boolean(True))
    scale = None
    if cute.const_expr(dtype.width == 8):
        scale = value_scale
    if cute.const_expr(scales is not None):
        scale = value_scale * scales[head // key_group, batch]
    target = AttentionResult(out, lse, sinks, variant, *places, scale)
    # So that nothing of this is computed ahead and kept through the loops.
    own = mma.get_slice(arch.inline_ptx("mov.b32 $0, $1;", [lane], cute.Int32))
    shape = (cfg.tile[0], cute.size(out, mode=[1]))
    coords = as_rows(own.partition_C(cute.make_identity_tensor(shape)))
    finish_rows(softmax, sums, coords, target, row, head, 1, cfg.is_wide)
