"""Rows of packed arrays that belong to no sequence: before the first one, and after the last."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch

_ROWS = 128  # of a block
_THREADS = 128


@cute.kernel
def clear_kernel(arrays: tuple, logs, starts: cute.Tensor):
    """Write zeros to the rows of a block that are of no sequence, of each array, and -inf to those
    of `logs`, if there are any.
    """
    first, end = starts[0], starts[cute.size(starts) - 1]
    begin = arch.block_idx()[0] * _ROWS
    if begin < first or begin + _ROWS > end:
        for n in cute.range_constexpr(len(arrays)):
            x = arrays[n]
            rows, head, heads, _ = x.shape
            for place in cute.range(arch.thread_idx()[0], _ROWS * head * heads, _THREADS):
                row = begin + place // (head * heads)
                if row < rows and (row < first or row >= end):
                    x[row, place % head, place // head % heads, 0] = x.element_type(0)
        if cute.const_expr(logs is not None):
            rows, heads, _ = logs.shape
            for place in cute.range(arch.thread_idx()[0], _ROWS * heads, _THREADS):
                row = begin + place // heads
                if row < rows and (row < first or row >= end):
                    logs[row, place % heads, 0] = -cute.Float32.inf


@cute.jit
def clear(arrays: tuple, logs, starts: cute.Tensor, stream: cute.Constexpr = None):
    """Write zeros to the rows of `arrays` (rows, head, heads, 1), packed alike, that are of no
    sequence, and -inf to those of `logs` (rows, heads, 1), which may be None. `starts` says where
    each sequence begins, and the last one ends.

    Padding behind the last sequence is common, and what follows would sum up its rows.
    """
    if arrays[0].shape[0] > 0:
        clear_kernel(arrays, logs, starts).launch(
            grid=(cute.ceil_div(arrays[0].shape[0], _ROWS), 1, 1),
            block=(_THREADS, 1, 1),
            stream=stream,
        )
