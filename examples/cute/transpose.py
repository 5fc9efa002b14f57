"""A transpose through swizzled shared memory: 16-byte accesses to global and to shared memory.

Each thread loads a square of `vector` x `vector` elements row by row, turns it in registers, and
writes its columns to shared memory, where the tile lies transposed. From there rows of the result
are copied out. The swizzle spreads both patterns over all banks.

    python examples/cute/transpose.py
"""

import numpy as np

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def transpose_kernel(
    x: cute.Tensor,
    y: cute.Tensor,
    tile: cute.Constexpr,
    vector: cute.Constexpr,
    whole: cute.Constexpr,
):
    across = tile // vector  # vectors, and threads, along a side of the tile
    thread = cute.arch.thread_idx()[0]
    bn, bm, _ = cute.arch.block_idx()
    m0, n0 = bm * tile, bn * tile
    tx, ty = thread % across, thread // across
    dtype = x.element_type
    if whole or (m0 + tile <= x.shape[0] and n0 + tile <= x.shape[1]):
        # (m, n) of the tile, m contiguous; bits of n / vector go into the number of m's vector
        bits = min(3, across.bit_length() - 1)
        swizzle = cute.make_swizzle(bits, vector.bit_length() - 1, tile.bit_length() - 1)
        plain = cute.make_layout((tile, tile), stride=(1, tile))
        smem = cute.utils.SmemAllocator()
        turned = smem.allocate_tensor(
            dtype, cute.make_composed_layout(swizzle, 0, plain), byte_alignment=1024
        )
        atom = cute.make_copy_atom(
            cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=vector * dtype.width
        )
        square = cute.make_rmem_tensor(
            cute.make_layout((vector, vector), stride=(vector, 1)), dtype
        )
        source = cute.local_tile(x, (vector, vector), (bm * across + ty, bn * across + tx))
        for i in cute.range_constexpr(vector):
            cute.copy(atom, source[i, None], square[i, None])
        target = cute.local_tile(turned, (vector, vector), (ty, tx))
        for j in cute.range_constexpr(vector):
            cute.copy(atom, square[None, j], target[None, j])
        cute.arch.sync_threads()
        # Rows n of the result, `across` threads along each, in steps of `across` rows.
        rows = cute.local_tile(y, (tile, tile), (bn, bm))
        for i in cute.range_constexpr(vector):
            n = ty + i * across
            from_smem = cute.local_tile(turned[None, n], (vector,), (tx,))
            to_gmem = cute.local_tile(rows[n, None], (vector,), (tx,))
            line = cute.make_rmem_tensor(vector, dtype)
            cute.copy(atom, from_smem, line)
            cute.copy(atom, line, to_gmem)
    else:
        for i in cute.range_constexpr(vector * vector):
            m, n = m0 + ty + (i // vector) * across, n0 + tx + (i % vector) * across
            if cute.elem_less((m, n), x.shape):
                y[n, m] = x[m, n]


@cute.jit
def transpose(x: cute.Tensor, y: cute.Tensor, tile: cute.Constexpr = None):
    """y = x.T for x of (M, N) and y of (N, M), both row-major or in any other order."""
    vector = cute.utils.common_vector((x, y), 1)
    side = tile
    if side is None:
        side = vector * 16 if vector > 1 else 16
    threads = (side // vector) ** 2
    m, n = x.shape
    whole = cute.is_static((m, n)) and m % side == 0 and n % side == 0
    if cute.size(x) > 0:
        transpose_kernel(x, y, side, vector, whole).launch(
            grid=(cute.ceil_div(n, side), cute.ceil_div(m, side), 1), block=(threads, 1, 1)
        )


if __name__ == "__main__":
    x = np.random.rand(300, 500).astype(np.float32)
    y = np.empty((500, 300), np.float32)
    transpose(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    print("transpose, largest error:", abs(y - x.T).max())
