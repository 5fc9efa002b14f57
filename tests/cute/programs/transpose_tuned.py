"""Transposition through shared memory; the tile is found by timing, then the code is reused."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.testing as testing
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def transpose_kernel(
    source: cute.Tensor,
    target: cute.Tensor,
    tile: cutlass.Constexpr[int],
    rows: cutlass.Constexpr[int],
    swizzled: cutlass.Constexpr[bool],
):
    x, y, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    outer = cute.make_layout((tile, tile), stride=(tile, 1))
    layout = outer
    if cutlass.const_expr(swizzled):
        bits = tile.bit_length() - 1
        layout = cute.make_composed_layout(cute.make_swizzle(bits, 0, bits), 0, outer)
    buffer = cutlass.utils.SmemAllocator().allocate_tensor(source.element_type, layout, 16)

    piece = cute.local_tile(source, (tile, tile), (by, bx))
    result = cute.local_tile(target, (tile, tile), (bx, by))
    limit = cute.make_identity_tensor(source.shape)
    where_from = cute.local_tile(limit, (tile, tile), (by, bx))
    for i in cutlass.range_constexpr(0, tile, rows):
        if cute.elem_less(where_from[y + i, x], source.shape):
            buffer[y + i, x] = piece[y + i, x]
    cute.arch.sync_threads()
    for i in cutlass.range_constexpr(0, tile, rows):
        if cute.elem_less(where_from[x, y + i], source.shape):
            result[y + i, x] = buffer[x, y + i]


@testing.autotune_jit(
    params_dict={"tile": [8, 16], "swizzled": [False, True]},
    update_on_change=["dtype"],
    warmup_iterations=0,
    iterations=1,
)
@cute.jit
def transpose(
    source: cute.Tensor,
    target: cute.Tensor,
    dtype: cutlass.Constexpr,
    tile: cutlass.Constexpr[int] = 16,
    swizzled: cutlass.Constexpr[bool] = True,
):
    if cutlass.const_expr(dtype.width > 32):
        raise testing.CantImplementError("elements of at most 32 bits")
    rows = 4
    m, n = source.shape
    transpose_kernel(source, target, tile, rows, swizzled).launch(
        grid=(cute.ceil_div(n, tile), cute.ceil_div(m, tile), 1), block=(tile, rows, 1)
    )


def run():
    rng = np.random.default_rng(7)
    for shape, dtype in (((20, 24), np.float32), ((9, 33), np.float32), ((16, 16), np.float16)):
        source = rng.standard_normal(shape).astype(dtype)
        target = np.zeros(shape[::-1], dtype)
        arguments = [from_dlpack(x).mark_layout_dynamic() for x in (source, target)]
        transpose(*arguments, arguments[0].element_type)
        np.testing.assert_array_equal(target, source.T)
    try:
        transpose(source.astype(np.float64), target.astype(np.float64), cutlass.Float64)
    except testing.CantImplementError:
        pass
    else:
        raise AssertionError("no configuration takes 64-bit elements")

    time = testing.benchmark(
        transpose,
        warmup_iterations=1,
        iterations=2,
        workspace_generator=lambda: testing.JitArguments(*arguments, cutlass.Float16),
        workspace_count=testing.get_workspace_count(source.nbytes * 2, 1, 2),
    )
    assert time > 0
