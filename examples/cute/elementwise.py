"""Elementwise kernels over thread-value layouts: `elementwise_add`, and `elementwise_apply` of any
function to any number of tensors.

A tile is what a block works on: threads and values are laid out over it by `make_layout_tv`, the
values of a thread along the contiguous mode, 16 bytes at a time where alignment allows. Blocks
inside the tensor copy whole vectors, blocks at a ragged edge go element by element behind
predicates.

    python examples/cute/elementwise.py
"""

import numpy as np

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def elementwise_kernel(
    op: cute.Constexpr,
    inputs: tuple,
    result: cute.Tensor,
    coords: cute.Tensor,
    shape: tuple,
    tiled_copy: cute.Constexpr,
    row_major: cute.Constexpr,
    whole: cute.Constexpr,
):
    thread = tiled_copy.get_slice(cute.arch.thread_idx()[0])
    block = cute.arch.block_idx()[0]
    if cute.const_expr(row_major):  # consecutive blocks follow the contiguous mode
        tiles_n = cute.size(result, mode=[1, 1])
        tile = (block // tiles_n, block % tiles_n)
    else:
        tiles_m = cute.size(result, mode=[1, 0])
        tile = (block % tiles_m, block // tiles_m)
    where = ((None, None), tile)
    parts = [thread.partition_S(x[where]) for x in inputs]
    target = thread.partition_D(result[where])
    fragments = [cute.make_fragment_like(part) for part in parts]
    computed = cute.make_fragment_like(target)
    tile_coords = coords[where]
    if whole or cute.elem_less(tile_coords[cute.size(tile_coords) - 1], shape):
        for part, fragment in zip(parts, fragments, strict=True):
            cute.copy(tiled_copy, part, fragment)
        computed.store(op(*[f.load() for f in fragments]).to(result.element_type))
        cute.copy(tiled_copy, computed, target)
    else:
        own_coords = thread.partition_S(tile_coords)
        inside = cute.make_rmem_tensor(own_coords.shape, cute.Boolean)
        for i in cute.range_constexpr(cute.size(inside)):
            inside[i] = cute.elem_less(own_coords[i], shape)
        for part, fragment in zip(parts, fragments, strict=True):
            fragment.fill(0)
            cute.copy(tiled_copy, part, fragment, pred=inside)
        computed.store(op(*[f.load() for f in fragments]).to(result.element_type))
        cute.copy(tiled_copy, computed, target, pred=inside)


@cute.jit
def elementwise_apply(
    op: cute.Constexpr,
    inputs: tuple,
    result: cute.Tensor,
    threads: cute.Constexpr = (4, 32),
    rows: cute.Constexpr = 4,
):
    """result = op(*inputs), elementwise, on tensors of two modes and one shape.

    `threads` of a block lie on a grid whose second mode is contiguous in memory. Each has `rows`
    vectors of 16 bytes, loaded one after another.
    """
    if any(cute.rank(x) != 2 for x in (*inputs, result)):
        raise ValueError("elementwise_apply takes tensors of two modes: reshape the arrays")
    row_major = result.leading_dim != 0
    vector = cute.utils.common_vector((*inputs, result), 1 if row_major else 0)
    if cute.const_expr(row_major):
        thr = cute.make_ordered_layout(threads, order=(1, 0))
        val = cute.make_ordered_layout((rows, vector), order=(1, 0))
    else:
        thr = cute.make_ordered_layout((threads[1], threads[0]), order=(0, 1))
        val = cute.make_ordered_layout((vector, rows), order=(0, 1))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), result.element_type)
    tiled_copy = cute.make_tiled_copy_tv(atom, thr, val)
    tiler = tiled_copy.tiler_mn
    coords = cute.zipped_divide(cute.make_identity_tensor(result.shape), tiler)
    divided = tuple(cute.zipped_divide(x, tiler) for x in inputs)
    target = cute.zipped_divide(result, tiler)
    tile = [cute.size(mode) for mode in tiler]
    whole = all(cute.is_static(n) and n % t == 0 for n, t in zip(result.shape, tile, strict=True))
    blocks = cute.size(target, mode=[1])
    if blocks > 0:
        elementwise_kernel(
            op, divided, target, coords, result.shape, tiled_copy, row_major, whole
        ).launch(grid=(blocks, 1, 1), block=(cute.size(thr), 1, 1))


@cute.jit
def elementwise_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """c = a + b."""
    elementwise_apply(lambda x, y: x + y, (a, b), c)


if __name__ == "__main__":
    a, b, c = np.random.rand(3, 500, 1000).astype(np.float32)
    elementwise_add(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
    print("a + b, largest error:", abs(c - (a + b)).max())
    x = np.random.rand(100, 333).astype(np.float32).T
    y = np.empty((333, 100), np.float32)
    elementwise_apply(lambda v: cute.where(v > 0.5, v, 0.0), (x,), y)
    print("relu(x - 0.5) + 0.5, largest error:", abs(y - np.where(x > 0.5, x, 0)).max())
