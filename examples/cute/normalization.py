"""RMSNorm and LayerNorm over the rows of a matrix, each read once and kept in registers.

Sums go through warp shuffles, then through shared memory where several warps share a row.

    python examples/cute/normalization.py
"""

import numpy as np
from rowwise import RowTiling

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack

ADD = cute.ReductionOp.ADD


@cute.kernel
def rms_norm_kernel(
    x: cute.Tensor,
    weight: cute.Tensor,
    y: cute.Tensor,
    epsilon: cute.Float32,
    tiling: cute.Constexpr,
    steps: cute.Constexpr,
):
    r, t = tiling.place()
    sums = tiling.partial_sums(buffers=2)
    always = tiling.inside(weight.shape[0], None, t)
    if cute.const_expr(steps > 1):  # kept in registers, else loaded when they are needed
        scale = tiling.load(weight, None, t, always)
    first = cute.arch.block_idx()[0] * (tiling.rows * steps) + r
    for step in range(steps):
        row = first + step * tiling.rows
        inside = tiling.inside(x.shape[1], tiling.row_is_inside(row, x.shape[0], steps), t)
        value = tiling.load(x, row, t, inside)
        squares = tiling.reduce(value * value, ADD, r, t, sums[step % 2])
        factor = cute.math.rsqrt(squares / cute.Float32(x.shape[1]) + epsilon, fastmath=True)
        if cute.const_expr(steps == 1):
            scale = tiling.load(weight, None, t, always)
        tiling.store(value * factor * scale, y, row, t, inside)


@cute.kernel
def layer_norm_kernel(
    x: cute.Tensor,
    weight: cute.Tensor,
    bias: cute.Tensor,
    y: cute.Tensor,
    epsilon: cute.Float32,
    tiling: cute.Constexpr,
    steps: cute.Constexpr,
):
    r, t = tiling.place()
    sums, squares = tiling.partial_sums(), tiling.partial_sums()
    always = tiling.inside(weight.shape[0], None, t)
    if cute.const_expr(steps > 1):
        scale = tiling.load(weight, None, t, always)
        shift = tiling.load(bias, None, t, always)
    columns = cute.Float32(x.shape[1])
    first = cute.arch.block_idx()[0] * (tiling.rows * steps) + r
    for step in range(steps):
        row = first + step * tiling.rows
        inside = tiling.inside(x.shape[1], tiling.row_is_inside(row, x.shape[0], steps), t)
        value = tiling.load(x, row, t, inside)
        mean = tiling.reduce(value, ADD, r, t, sums[0]) / columns
        centred = value - mean
        counted = tiling.only(centred, inside)
        variance = tiling.reduce(counted * counted, ADD, r, t, squares[0]) / columns
        factor = cute.math.rsqrt(variance + epsilon, fastmath=True)
        if cute.const_expr(steps == 1):
            scale = tiling.load(weight, None, t, always)
            shift = tiling.load(bias, None, t, always)
        tiling.store(centred * factor * scale + shift, y, row, t, inside)


@cute.jit
def rms_norm(
    x: cute.Tensor,
    weight: cute.Tensor,
    y: cute.Tensor,
    epsilon: cute.Float32,
    columns: cute.Constexpr = None,
    threads: cute.Constexpr = None,
    rows: cute.Constexpr = None,
    steps: cute.Constexpr = 1,
):
    """y = x / sqrt(mean(x * x) + epsilon) * weight along mode 1; arguments as for `softmax`.

    A block does `steps` times its rows, one after another, and keeps the weights meanwhile.
    """
    tiling = RowTiling((x, y), columns, threads, rows, vectors=(weight,))
    blocks = cute.ceil_div(x.shape[0], tiling.rows * steps)
    if blocks > 0:
        rms_norm_kernel(x, weight, y, epsilon, tiling, steps).launch(
            grid=(blocks, 1, 1), block=(tiling.block, 1, 1)
        )


@cute.jit
def layer_norm(
    x: cute.Tensor,
    weight: cute.Tensor,
    bias: cute.Tensor,
    y: cute.Tensor,
    epsilon: cute.Float32,
    columns: cute.Constexpr = None,
    threads: cute.Constexpr = None,
    rows: cute.Constexpr = None,
    steps: cute.Constexpr = 1,
):
    """y = (x - mean(x)) / sqrt(var(x) + epsilon) * weight + bias along mode 1."""
    tiling = RowTiling((x, y), columns, threads, rows, vectors=(weight, bias))
    blocks = cute.ceil_div(x.shape[0], tiling.rows * steps)
    if blocks > 0:
        layer_norm_kernel(x, weight, bias, y, epsilon, tiling, steps).launch(
            grid=(blocks, 1, 1), block=(tiling.block, 1, 1)
        )


if __name__ == "__main__":
    x = np.random.randn(40, 1024).astype(np.float16)
    weight, bias = np.random.rand(2, 1024).astype(np.float16)
    y = np.empty_like(x)
    wide = x.astype(np.float64)
    args = [from_dlpack(a, assumed_align=16) for a in (x, weight, bias, y)]
    rms_norm(args[0], args[1], args[3], 1e-5)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * weight
    print("RMSNorm, largest error:", abs(y - expected).max())
    layer_norm(*args, 1e-5)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight + bias
    print("LayerNorm, largest error:", abs(y - expected).max())
