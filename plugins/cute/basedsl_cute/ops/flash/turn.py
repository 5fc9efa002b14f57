"""The values of attention, turned for products of 8 bits: keys contiguous, in the order of weights.

wgmma reads operands of 8 bits only along the summed mode, here the keys. Of each 16 keys, the order
is that in which a thread has its weights (`ops.flash.softmax.narrow_weights`).
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch

THREADS = 128
PIECE = 4  # elements of a head that a thread turns
GROUP = 16  # keys that are put in order, 16 bytes
KEYS = 2 * GROUP  # of a thread: it writes whole sectors of memory, of 32 bytes


@cute.kernel
def turn_kernel(v: cute.Tensor, turned: cute.Tensor):
    """Turn PIECE elements of KEYS keys in each thread."""
    block, head, batch = arch.block_idx()
    number = block * THREADS + arch.thread_idx()[0]
    pieces = cute.size(v, mode=[1]) // PIECE
    key0, piece = number // pieces * KEYS, number % pieces
    if key0 < turned.shape[1]:
        held = cute.make_rmem_tensor((PIECE, KEYS), v.element_type)
        held.fill(0.0)
        for i in cute.range_constexpr(KEYS):
            if key0 + i < v.shape[0]:
                row = v[key0 + i, None, head, batch]
                cute.autovec_copy(cute.local_tile(row, (PIECE,), (piece,)), held[None, i])
        for half in cute.range_constexpr(KEYS // GROUP):
            if key0 + half * GROUP < turned.shape[1]:
                for d in cute.range_constexpr(PIECE):
                    column = cute.make_rmem_tensor((GROUP,), v.element_type)
                    for slot in cute.range_constexpr(GROUP):
                        key = slot // 4 * 2 + slot % 2 + slot // 2 % 2 * 8
                        column[slot] = held[d, half * GROUP + key]
                    line = turned[piece * PIECE + d, None, head, batch]
                    cute.autovec_copy(
                        column, cute.local_tile(line, (GROUP,), (key0 // GROUP + half,))
                    )


@cute.jit
def turn(v: cute.Tensor, turned: cute.Tensor, stream: cute.Constexpr = None):
    """Write `v` (keys, head, heads, batches) into `turned` (head, keys, heads, batches), whose keys
    are contiguous, as many as are whole groups of 16; what lies behind the last key is zero.
    """
    groups = cute.ceil_div(turned.shape[1], KEYS)
    pieces = cute.size(v, mode=[1]) // PIECE
    turn_kernel(v, turned).launch(
        grid=(cute.ceil_div(groups * pieces, THREADS), v.shape[2], v.shape[3]),
        block=(THREADS, 1, 1),
        stream=stream,
    )
