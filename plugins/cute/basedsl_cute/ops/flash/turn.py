"""The values of attention, turned for products of 8 bits: keys contiguous, in the order of weights.

wgmma reads operands of 8 bits only along the summed mode, here the keys. Of each 16 keys, the order
is that in which a thread has its weights (`ops.flash.softmax.narrow_weights`).

They are written as rows of keys, or in blocks of 32 keys as shared memory has them with a swizzle
of 32 bytes, so that a tile of such blocks is copied as a whole.
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch

PIECE = 4  # elements of a head that a thread turns
GROUP = 16  # keys that are put in order, 16 bytes
KEYS = 2 * GROUP  # of a thread, whose loads are in flight together
LINE = 128  # keys of a block, which writes whole lines of memory
GROUPS = LINE // GROUP
BLOCK = 2 * GROUP  # keys of a block, a row of the swizzle


@cute.kernel
def turn_kernel(
    v: cute.Tensor,
    turned: cute.Tensor,
    width: cute.Constexpr,
    in_blocks: cute.Constexpr,
    lets_start: cute.Constexpr,
    cleared,  # a tensor or None
):
    """Turn LINE keys in each block, of a thread for each element of a head."""
    if cute.const_expr(lets_start):
        arch.griddepcontrol_launch_dependents()
    block, head, batch = arch.block_idx()
    if cute.const_expr(cleared is not None):
        if block + head + batch == 0:
            for i in cute.range(arch.thread_idx()[0], cute.size(cleared), arch.block_dim()[0]):
                cleared[i] = 0
    thread, pieces = arch.thread_idx()[0], width // PIECE
    part, piece = thread // pieces, thread % pieces
    smem = cute.utils.SmemAllocator()
    # Elements of a group, groups of a line, lines: threads of a warp write groups of every fourth
    # line, which lie apart (`place`), and read eight groups of one.
    lines = smem.allocate_tensor(v.element_type, cute.make_layout((GROUP, GROUPS, width)), 128)
    held = cute.make_rmem_tensor((PIECE, KEYS), v.element_type)
    held.fill(0.0)
    key0 = block * LINE + part * KEYS
    for i in cute.range_constexpr(KEYS):
        if key0 + i < v.shape[0]:
            row = v[key0 + i, None, head, batch]
            cute.autovec_copy(cute.local_tile(row, (PIECE,), (piece,)), held[None, i])
    for half in cute.range_constexpr(KEYS // GROUP):
        for d in cute.range_constexpr(PIECE):
            column = cute.make_rmem_tensor((GROUP,), v.element_type)
            for slot in cute.range_constexpr(GROUP):
                key = slot // 4 * 2 + slot % 2 + slot // 2 % 2 * 8
                column[slot] = held[d, half * GROUP + key]
            line = piece * PIECE + d
            cute.autovec_copy(column, lines[None, place(part * 2 + half, line), line])
    arch.sync_threads()
    column = cute.make_rmem_tensor((GROUP,), v.element_type)
    if cute.const_expr(in_blocks):
        for i in cute.range_constexpr(GROUPS):
            # Parts of 16 bytes of a block, of which each line has two.
            part = thread + i % 2 * width
            line, at = part // 2, block * (LINE // BLOCK) + i // 2
            group = i // 2 * 2 + (part ^ (line // 4)) % 2
            cute.autovec_copy(lines[None, place(group, line), line], column)
            if at < turned.shape[1]:
                to = turned[None, at, head, batch]
                cute.autovec_copy(column, cute.local_tile(to, (GROUP,), (part,)))
    else:
        group, first = thread % GROUPS, thread // GROUPS
        at = block * GROUPS + group
        if at * GROUP < turned.shape[1]:
            for i in cute.range_constexpr(GROUPS):
                line = first + i * (width // GROUPS)
                cute.autovec_copy(lines[None, place(group, line), line], column)
                to = turned[line, None, head, batch]
                cute.autovec_copy(column, cute.local_tile(to, (GROUP,), (at,)))


def place(group, line):
    """The place of a group in its line in shared memory, without conflicts of banks."""
    return group ^ (line // PIECE % GROUPS) ^ (line % PIECE * 2)


@cute.jit
def turn(
    v: cute.Tensor,
    turned: cute.Tensor,
    in_blocks: cute.Constexpr = False,
    lets_start: cute.Constexpr = False,
    stream: cute.Constexpr = None,
    cleared=None,
):
    """Write `v` (keys, head, heads, batches) into `turned` (head, keys, heads, batches), whose keys
    are contiguous, as many as are whole groups of 16, or `in_blocks` into `turned` (elements of a
    block, blocks, heads, batches); what lies behind the last key is zero. With `lets_start` a
    kernel that begins early may follow. `cleared` is None or what becomes zero.
    """
    width = cute.size(v, mode=[1])
    lines = cute.ceil_div(turned.shape[1], LINE // BLOCK if in_blocks else LINE)
    turn_kernel(v, turned, width, in_blocks, lets_start, cleared).launch(
        grid=(lines, v.shape[2], v.shape[3]),
        block=(width // PIECE * (LINE // KEYS), 1, 1),
        stream=stream,
    )
