"""Operands inside compiled GEMM kernels: matrices of three modes with the caller's promises, and
the write of C with the epilogue.
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.utils.epilogue import apply_epilogue, load_operand, per_column


def matrix(x, vector=1, major=None):
    """The tensor `x` (rows, columns) or (rows, columns, batches) with three modes.

    `vector` is promised to divide the address (in elements), the contiguous extent and the strides
    of the other modes. `major` is the contiguous mode, 0 or 1; by default the one of stride 1.
    Raises DSLTypeError where neither mode is contiguous.
    """
    shape, stride = [*x.shape, 1][:3], [*x.stride, 0][:3]
    lead = x.leading_dim if major is None else major
    if lead not in (0, 1):
        raise DSLTypeError(
            "a matrix operand has no mode that is known to be contiguous",
            notes=((f"the operand is {x}", None),),
            hint="one of the first two modes must have stride 1: copy a view where none has",
        )
    shape = [cute.assume(s, vector) if i == lead else s for i, s in enumerate(shape)]
    # Batches of stride 1 get it as a dynamic number: what is statically 1 is the contiguous mode.
    stride[2] = cute.Int64(1) if type(stride[2]) is int and stride[2] == 1 else stride[2]
    stride = [1 if i == lead else cute.assume(d, vector) for i, d in enumerate(stride)]
    pointer = x.iterator.align(max(1, vector * x.element_type.width // 8))
    return cute.make_tensor(pointer, cute.make_layout(tuple(shape), stride=tuple(stride)))


def kernel_order(x):
    """The tensor (rows, columns) or (batches, rows, columns) as (rows, columns, batches)."""
    if cute.rank(x.layout) == 3:
        return cute.select(x, [1, 2, 0])
    return cute.append_ones(x, up_to_rank=3)


def transposed(x):
    """The transposed view of a matrix (rows, columns, batches); a number stays as it is."""
    return cute.select(x, [1, 0, 2]) if isinstance(x, cute.Tensor) else x


def three_modes(x):
    """An epilogue operand with a third mode for batches; a number stays as it is."""
    return cute.append_ones(x, up_to_rank=3) if isinstance(x, cute.Tensor) else x


@cute.jit
def check_extents(a, b, c, parts: cute.Constexpr = 1):
    """Assert that A is (M, K), B (N, K) and C (M, N), with as many batches if any. With `parts`
    above 1, C has so many matrices in their place, which may have more columns.
    """
    assert a.shape[1] == b.shape[1], "A is (M, K) and B (N, K): their K differ"
    assert c.shape[0] == a.shape[0], "C is (M, N) and A (M, K): their M differ"
    if cute.const_expr(parts == 1):
        assert c.shape[1] == b.shape[0], "C is (M, N) and B (N, K): their N differ"
    if cute.const_expr(cute.rank(c) == 3 and parts == 1):
        assert a.shape[2] == c.shape[2], "A and C have different numbers of batches"
        assert b.shape[2] == c.shape[2], "B and C have different numbers of batches"


class OutputTile:
    """C, the coordinates of its elements and the epilogue's operands, partitioned alike.

    `shape` is (M, N) of all of C.
    """

    def __init__(self, c, operands, coords=None, shape=None):
        self.c, self.operands, self.coords, self.shape = c, operands, coords, shape

    def of_batch(self, batch):
        """The matrices of one batch."""
        shape = (self.c.shape[0], self.c.shape[1])
        cut = self.each(lambda x: x[None, None, batch])
        return OutputTile(cut.c, cut.operands, cute.make_identity_tensor(shape), shape)

    def each(self, cut):
        """Apply the partition `cut` to C, the coordinates and the operands; numbers stay."""
        operands = tuple(cut(x) if isinstance(x, cute.Tensor) else x for x in self.operands)
        coords = None if self.coords is None else cut(self.coords)
        return OutputTile(cut(self.c), operands, coords, self.shape)

    @cute.jit
    def put(self, sums, epilogue, is_inside: cute.Constexpr = False):
        """Apply the epilogue to `sums`, a fragment in registers, and write the result.

        `self` is a vector of consecutive columns of a row. Elements beyond C are neither read nor
        written; `is_inside` promises that the whole vector lies inside.
        """
        last = self.coords[cute.size(self.coords) - 1]
        inside = True if is_inside else cute.elem_less(last, self.shape)
        loaded = [
            load_operand(x, self.coords, self.shape, inside).reshape((cute.size(sums),))
            if isinstance(x, cute.Tensor)
            else x
            for x in self.operands
        ]
        acc = sums.load().reshape((cute.size(sums),))
        out = cute.make_rmem_tensor((cute.size(sums),), self.c.element_type)
        out.store(apply_epilogue(epilogue, acc, loaded, self.c.element_type))
        if inside:
            cute.autovec_copy(out, self.c)
        else:
            for i in cute.range_constexpr(cute.size(out)):
                if cute.elem_less(self.coords[i], self.shape):
                    self.c[i] = out[i]


def operands_of_kernel(extras, columns, shape):
    """Return the operands of an epilogue as a kernel takes them, for C of this `shape`: numbers as
    they are, a vector with a number for each column where `columns` says so, matrices transposed.
    """
    return tuple(
        x
        if not isinstance(x, cute.Tensor)
        else per_column(x, shape)
        if is_column
        else kernel_order(x)
        for x, is_column in zip(extras, columns, strict=True)
    )
