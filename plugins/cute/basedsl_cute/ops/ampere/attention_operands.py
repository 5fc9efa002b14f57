"""The operands of attention's two products by mma.sync, and their loads from shared memory."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute.ops.ampere.attention_rows import COLUMN, ROW
from basedsl_cute.ops.ampere.mainloop import FragmentLoader


class AttentionOperands:
    """A thread's fragments of queries, keys and values, and the readers that load them.

    `tile` is (queries, keys), `heads` the extents of the heads of keys and of values, `staged` the
    tensors of all three in shared memory.
    """

    def __init__(self, mma, tile, heads, staged, thread):
        (m, n), (head, head_v), (sq, sk, sv) = tile, heads, staged
        rq = mma.make_fragment_A(mma.partition_shape_A((m, head)))
        rk = mma.make_fragment_B(mma.partition_shape_B((n, head)))
        rv = mma.make_fragment_B(mma.partition_shape_B((head_v, n)))
        self.fragments = rq, rk, rv
        self.readers = (
            FragmentLoader(cute.make_tiled_copy_A, ROW, mma, sq, rq, thread),
            FragmentLoader(cute.make_tiled_copy_B, ROW, mma, sk, rk, thread),
            FragmentLoader(cute.make_tiled_copy_B, COLUMN, mma, sv, rv, thread),
        )
