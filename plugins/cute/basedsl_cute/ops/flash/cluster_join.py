"""The results of a cluster's blocks, which shared the keys of queries, joined through their shared
memory: without a kernel and memory of its own, as `ops.flash.combine` needs.
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.variant import LOG2_E

VECTOR = 4  # columns that a thread joins at a time


@cute.jit
def join_rows(
    softmax,
    sums,
    coords,
    result,
    memory,
    where,
    thread,
    packed: cute.Constexpr,
    splits: cute.Constexpr,
    threads: cute.Constexpr,
):
    """Leave a block's results in `memory` (rows, columns), with the logarithms of their sums, and
    write an equal share of the rows of all: `where` are the first row of the tile, the number of
    rows of the sequence and the first head. The blocks of the cluster are the splits in order.
    """
    values, logs = memory
    (row0, rows, head), rank = where, arch.block_idx_in_cluster()
    out, sequence, columns = result.out, result.sequence, cute.size(memory[0], mode=[1])
    for r in cute.range_constexpr(cute.size(sums, mode=[0])):
        row, column = coords[r, 0]
        sink = None
        if cute.const_expr(result.variant.sinks):
            own_head = cute.where(row0 + row < rows, head + (row0 + row) % packed, 0)
            sink = cute.Float32(result.sinks[own_head]) * LOG2_E
            sink = cute.where(result.is_first, sink, -cute.Float32.inf)
        inverse, log = softmax.finish(r, sink)
        if row0 + row < rows:
            for c in cute.range_constexpr(0, cute.size(sums, mode=[1]), 2):
                at = coords[r, c][1]
                values[row, at] = sums[r, c] * inverse
                values[row, at + 1] = sums[r, c + 1] * inverse
            if column == 0:
                logs[row] = log
    arch.cluster_arrive()
    arch.cluster_wait()
    theirs = [
        [cute.make_tensor(arch.map_dsmem_ptr(x.iterator, i), x.layout) for x in memory]
        for i in range(splits)
    ]
    pieces = columns // VECTOR
    live = cute.min(rows - row0, cute.size(values, mode=[0]))
    for i in cute.range(rank * threads + thread, live * pieces, splits * threads):
        row, piece = i // pieces, i % pieces
        found = [logs_there[row] for _, logs_there in theirs]
        largest = found[0]
        for log in found[1:]:
            largest = arch.fmax(largest, log)
        base = cute.where(largest == -cute.Float32.inf, 0.0, largest)
        weights = [cute.math.exp(log - base) for log in found]
        total = weights[0]
        for weight in weights[1:]:
            total = total + weight
        nothing = total == 0.0
        inverse = cute.where(nothing, 0.0, 1.0 / cute.where(nothing, 1.0, total))
        joined = cute.make_rmem_tensor((VECTOR,), cute.Float32)
        joined.fill(0.0)
        part = cute.make_rmem_tensor((VECTOR,), cute.Float32)
        for (values_there, _), weight in zip(theirs, weights, strict=True):
            source = cute.local_tile(values_there[row, None], (VECTOR,), (piece,))
            cute.autovec_copy(source, part)
            joined.store(joined.load() + part.load() * weight)
        query = sequence.first_query + (row0 + row) // packed
        own_head = head + (row0 + row) % packed
        narrow = cute.make_rmem_tensor((VECTOR,), out.element_type)
        narrow.store((joined.load() * inverse).to(out.element_type))
        line = out[query, None, own_head, result.batch]
        cute.autovec_copy(narrow, cute.local_tile(line, (VECTOR,), (piece,)))
        if cute.const_expr(result.lse is not None):
            if piece == 0:
                log = base + cute.math.log(cute.where(nothing, 1.0, total))
                whole = cute.where(nothing, -cute.Float32.inf, log)
                result.lse[query, own_head, result.batch] = whole
    # The others read this block's memory until then.
    arch.cluster_arrive()
    arch.cluster_wait()
