"""The results of blocks that shared the keys of a query, joined into one."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch

WARPS = 4  # of a block, which has one row
AT_ONCE = 16  # parts of which a warp loads its columns before it adds them


@cute.kernel
def combine_kernel(
    parts: cute.Tensor,
    logs: cute.Tensor,
    out: cute.Tensor,
    lse,  # a tensor or None
    splits: cute.Constexpr,
    overlap: cute.Constexpr,
):
    """Each warp weighs all parts and sums every fourth, each lane some consecutive columns; then
    the threads sum the warps' columns.
    """
    if cute.const_expr(overlap):
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()
    thread = arch.thread_idx()[0]
    row, head, batch = arch.block_idx()
    warp, lane = thread // arch.WARP_SIZE, thread % arch.WARP_SIZE
    head_v, batches = cute.size(out, mode=[1]), out.shape[3]
    width = head_v // arch.WARP_SIZE
    smem = cute.utils.SmemAllocator()
    weights = smem.allocate_tensor(cute.Float32, cute.make_layout((splits, WARPS)))
    sums = smem.allocate_tensor(cute.Float32, cute.make_layout((head_v, WARPS)), 16)
    own = cute.ceil_div(splits, WARPS)
    held = cute.make_rmem_tensor((width, min(own, AT_ONCE)), cute.Float32)
    load_parts(held, parts, row, head, batch, warp, lane, 0, splits)
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
        if thread == 0:
            log = base + cute.math.log(cute.where(nothing, 1.0, total))
            lse[row, head, batch] = cute.where(nothing, -cute.Float32.inf, log)
    arch.sync_warp()
    value = cute.make_rmem_tensor((width,), cute.Float32)
    value.fill(0.0)
    for first in cute.range_constexpr(0, own, AT_ONCE):
        if cute.const_expr(first > 0):
            load_parts(held, parts, row, head, batch, warp, lane, first, splits)
        for i in cute.range_constexpr(min(AT_ONCE, own - first)):
            s = (first + i) * WARPS + warp
            if s < splits:
                value.store(value.load() + held[None, i].load() * weights[s, warp])
    cute.autovec_copy(value, cute.local_tile(sums[None, warp], (width,), (lane,)))
    arch.sync_threads()
    for column in cute.range(thread, head_v, WARPS * arch.WARP_SIZE):
        result = sums[column, 0]
        for other in cute.range_constexpr(1, WARPS):
            result = result + sums[column, other]
        out[row, column, head, batch] = (result * inverse).to(out.element_type)


@cute.jit
def load_parts(
    held, parts, row, head, batch, warp, lane, first: cute.Constexpr, splits: cute.Constexpr
):
    """Load a lane's columns of parts `first`, `first` + 1 .. of the warp."""
    width, batches = cute.size(held, mode=[0]), parts.shape[3] // splits
    for i in cute.range_constexpr(cute.size(held, mode=[1])):
        s = (first + i) * WARPS + warp
        if s < splits:
            source = parts[row, None, head, s * batches + batch]
            cute.autovec_copy(cute.local_tile(source, (width,), (lane,)), held[None, i])


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
    combine_kernel(parts, logs, out, lse, splits, overlap).launch(
        grid=(out.shape[0], out.shape[2], out.shape[3]),
        block=(WARPS * arch.WARP_SIZE, 1, 1),
        stream=stream,
        use_pdl=overlap,
    )
