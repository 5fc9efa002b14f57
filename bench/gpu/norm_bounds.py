"""Bounds of an all-reduce with residual and norm: copies of rows by the blocks that a norm takes.

A norm needs a whole row. "copy rows" reads and writes what an all-reduce with norm does on its own
GPU, one block for each row; "norm rows" adds up the squares of a row between. Their difference is
the least that a norm adds to an all-reduce.
"""

import functools

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.block_sums import block_sums

VECTOR = 8  # elements of 16 bits


@cute.kernel
def rows_kernel(
    x: cute.Tensor, residual: cute.Tensor, weight: cute.Tensor, y: cute.Tensor,
    columns: cute.Constexpr, sums: cute.Constexpr,
):  # fmt: skip
    warps = columns // VECTOR // arch.WARP_SIZE
    partial = cute.make_tensor(arch.alloc_smem(cute.Float32, warps), cute.make_layout((warps, 1)))
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    parts = [
        cute.zipped_divide(one, (1, VECTOR))[None, (place, thread)]
        for one, place in ((x, row), (residual, row), (weight, 0), (y, row))
    ]
    kept = [cute.make_rmem_tensor((VECTOR,), x.element_type) for _ in range(4)]
    for n in cute.range_constexpr(3):
        cute.autovec_copy(parts[n], kept[n])
    value = kept[0].load().to(cute.Float32) + kept[1].load().to(cute.Float32)
    kept[1].store(value.to(x.element_type))
    cute.autovec_copy(kept[1], parts[1])
    factor = cute.Float32(1.0)
    if cute.const_expr(sums):
        squares = (value * value).reduce(cute.ReductionOp.ADD, cute.Float32(0.0), 0)
        (squares,) = block_sums((arch.warp_reduction_sum(squares),), partial, warps)
        factor = cute.math.rsqrt(squares / columns + 1e-6)
    kept[3].store((value * factor * kept[2].load().to(cute.Float32)).to(x.element_type))
    cute.autovec_copy(kept[3], parts[3])


@cute.jit
def rows(
    x: cute.Tensor, residual: cute.Tensor, weight: cute.Tensor, y: cute.Tensor,
    stream: cute.Int64, columns: cute.Constexpr, sums: cute.Constexpr,
):  # fmt: skip
    rows_kernel(x, residual, weight, y, columns, sums).launch(
        grid=x.shape[0], block=columns // VECTOR, stream=cute.Stream(stream.ir_value())
    )


def contenders(space, x, residual, weight, y):
    """Return the copy and the norm of rows of at most 8,192 columns; `space` has the stream."""
    stream = space._launches._stream
    given = x, residual, weight.view(1, -1), y
    found = {}
    for name, sums in (("copy rows", False), ("norm rows", True)):
        code = cute.compile(rows, *given, stream(), x.shape[1], sums)
        found[name] = functools.partial(_call, code, given, stream)
    return found


def _call(code, given, stream):
    code(*given, stream())
