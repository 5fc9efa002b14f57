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
    overlap: cute.Constexpr,
):
    """Each lane weighs some of the parts, then sums some consecutive columns of all of them."""
    if cute.const_expr(overlap):
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()
    thread = arch.thread_idx()[0]
    tile, head, batch = arch.block_idx()
    warp, lane = thread // arch.WARP_SIZE, thread % arch.WARP_SIZE
    row, batches = tile * ROWS + warp, out.shape[3]
    layout = cute.make_layout((splits, ROWS))
    weights = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout)
    if row < out.shape[0]:
        largest = -cute.Float32.inf
        for s in cute.range(lane, splits, arch.WARP_SIZE):
            largest = arch.fmax(largest, logs[row, head, s * batches + batch])
        largest = arch.warp_reduction_max(largest)
        base = cute.where(largest == -cute.Float32.inf, 0.0, largest)
        total = cute.Float32(0.0)
        for s in cute.range(lane, splits, arch.WARP_SIZE):
            weight = cute.math.exp(logs[row, head, s * batches + batch] - base)
            weights[s, warp] = weight
            total += weight
        total = arch.warp_reduction_sum(total)
        nothing = total == 0.0
        inverse = cute.where(nothing, 0.0, 1.0 / cute.where(nothing, 1.0, total))
        if cute.const_expr(lse is not None):
            if lane == 0:
                log = base + cute.math.log(cute.where(nothing, 1.0, total))
                lse[row, head, batch] = cute.where(nothing, -cute.Float32.inf, log)
        arch.sync_warp()
        width = cute.size(out, mode=[1]) // arch.WARP_SIZE
        value = cute.make_rmem_tensor((width,), cute.Float32)
        value.fill(0.0)
        for s in cute.range(splits, unroll=8):
            part = cute.make_rmem_tensor((width,), cute.Float32)
            source = parts[row, None, head, s * batches + batch]
            cute.autovec_copy(cute.local_tile(source, (width,), (lane,)), part)
            value.store(value.load() + part.load() * weights[s, warp])
        result = cute.make_rmem_tensor((width,), out.element_type)
        result.store((value.load() * inverse).to(out.element_type))
        target = out[row, None, head, batch]
        for i in cute.range_constexpr(width):
            target[lane * width + i] = result[i]


@cute.jit
def combine(
    parts: cute.Tensor,
    logs: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    splits: cute.Constexpr,
    overlap: cute.Constexpr = False,
    stream: cute.Constexpr = None,
):
    """Join `parts` (queries, head, heads, splits x batches), results of softmax over parts of the
    keys, with `logs` (queries, heads, splits x batches), the logarithms of their sums, into `out`
    (queries, head, heads, batches) and `lse` (queries, heads, batches) if given. The extent of a
    head is a multiple of 32. With `overlap` the kernel starts while the preceding one ends.
    """
    grid = (cute.ceil_div(out.shape[0], ROWS), out.shape[2], out.shape[3])
    combine_kernel(parts, logs, out, lse, splits, overlap).launch(
        grid=grid, block=(ROWS * arch.WARP_SIZE, 1, 1), stream=stream, use_pdl=overlap
    )
