"""Gather and scatter of rows with 64-bit indices: y[i] = x[index[i]] and y[index[i]] = x[i].

Rows go in vectors as wide as alignment proves. An index outside the table leaves its row alone.

    python examples/cute/gather_scatter.py
"""

import numpy as np
from rowwise import RowTiling

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def gather_kernel(x: cute.Tensor, index: cute.Tensor, y: cute.Tensor, tiling: cute.Constexpr):
    r, t = tiling.place()
    row = cute.arch.block_idx()[0] * tiling.rows + r
    if row < y.shape[0]:
        place = index[row]
        if 0 <= place and place < x.shape[0]:
            inside = tiling.inside(y.shape[1], None, t)
            fragment = cute.make_rmem_tensor(tiling.shape, x.element_type)
            tiling.copy(tiling.part(x, place, t), fragment, inside)
            tiling.copy(fragment, tiling.part(y, row, t), inside)


@cute.kernel
def scatter_kernel(x: cute.Tensor, index: cute.Tensor, y: cute.Tensor, tiling: cute.Constexpr):
    r, t = tiling.place()
    row = cute.arch.block_idx()[0] * tiling.rows + r
    if row < x.shape[0]:
        place = index[row]
        if 0 <= place and place < y.shape[0]:
            inside = tiling.inside(x.shape[1], None, t)
            fragment = cute.make_rmem_tensor(tiling.shape, x.element_type)
            tiling.copy(tiling.part(x, row, t), fragment, inside)
            tiling.copy(fragment, tiling.part(y, place, t), inside)


@cute.jit
def gather(
    x: cute.Tensor,
    index: cute.Tensor,
    y: cute.Tensor,
    columns: cute.Constexpr = None,
    threads: cute.Constexpr = None,
    rows: cute.Constexpr = None,
):
    """y[i] = x[index[i]], rows of two matrices; arguments as for `softmax`."""
    tiling = RowTiling((y, x), columns, threads, rows)
    blocks = cute.ceil_div(y.shape[0], tiling.rows)
    if blocks > 0:
        gather_kernel(x, index, y, tiling).launch(grid=(blocks, 1, 1), block=(tiling.block, 1, 1))


@cute.jit
def scatter(
    x: cute.Tensor,
    index: cute.Tensor,
    y: cute.Tensor,
    columns: cute.Constexpr = None,
    threads: cute.Constexpr = None,
    rows: cute.Constexpr = None,
):
    """y[index[i]] = x[i], rows of two matrices; the indices are distinct."""
    tiling = RowTiling((x, y), columns, threads, rows)
    blocks = cute.ceil_div(x.shape[0], tiling.rows)
    if blocks > 0:
        scatter_kernel(x, index, y, tiling).launch(grid=(blocks, 1, 1), block=(tiling.block, 1, 1))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1000, 96)).astype(np.float32)
    index = rng.permutation(1000)[:200]
    y = np.empty((200, 96), np.float32)
    gather(*(from_dlpack(a, assumed_align=16) for a in (x, index, y)))
    print("gather exact:", np.array_equal(y, x[index]))
    back = np.zeros_like(x)
    scatter(*(from_dlpack(a, assumed_align=16) for a in (y, index, back)))
    print("scatter exact:", np.array_equal(back[index], x[index]))
