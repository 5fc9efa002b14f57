"""Choices for Blackwell kernels, as numbers: tiles of the epilogue, copies, stages, multicast.

They follow the collective builders of CUTLASS's C++ headers (`sm100_common.inl`,
`sm100_builder.inl`, `sm120_common.inl`), so that kernels for those tiles find the same here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from basedsl_cute import algebra
from basedsl_cute.hardware.targets import WARP_SIZE


def tmem_warps(blocks: int, mma_m: int) -> tuple[int, int]:
    """Return how the four warps of an epilogue lie over (M, N) of a block's accumulator."""
    return (2, 2) if blocks == 2 and mma_m == 128 else (4, 1)


class EpilogueMatrix(NamedTuple):
    """A matrix of the epilogue: bits of an element, and True if M is contiguous."""

    bits: int
    is_m_major: bool


def epilogue_tile(
    cta_tile_mn: tuple[int, int],
    warps: tuple[int, int],
    d: EpilogueMatrix,
    c: EpilogueMatrix | None = None,
    *,
    is_block_scaled: bool = False,
    scales_columns: bool = False,
) -> tuple[Any, Any]:
    """Return the tile (M, N) that an epilogue does at once, each a layout.

    `d` is the output, `c` the source or None; `scales_columns` says that the epilogue holds a
    factor for each column. Where the warps lie in two columns, N has the columns of both halves.
    """
    m, n = cta_tile_mn
    rows = min(m, WARP_SIZE * warps[0])
    if is_block_scaled and n == 256:  # two accumulators may overlap in tensor memory
        return rows, 128
    smallest = max(x.bits for x in (c, d) if x is not None)
    least = max(_least_columns(x, warps[1]) for x in (c, d) if x is not None)
    wanted = max(_wanted_columns(m, n, rows, smallest, c is not None, scales_columns), least)
    columns = wanted if wanted <= n and n % wanted == 0 else n
    of_warps = algebra.Layout((columns // warps[1], warps[1]), (1, n // warps[1]))
    return algebra.make_layout(rows), algebra.coalesce(of_warps)


def _wanted_columns(m: int, n: int, rows: int, bits: int, has_c: bool, scales: bool) -> int:
    if not has_c:
        return (8192 if bits == 4 else 4096) // rows
    if bits == 32:
        return 16 if m > 64 and n <= 128 else 32
    if scales:
        return 32
    if bits == 16:
        return 32 if n <= 128 else 64
    return 64


def _least_columns(x: EpilogueMatrix, warps: int) -> int:
    if x.is_m_major:
        return 8 * warps
    return 128 * warps if x.bits == 6 else 128 // x.bits * warps


def tmem_load(acc_bits: int, d: EpilogueMatrix, lanes: int) -> tuple[str, bool]:
    """Return (shape, packed) of the tcgen05.ld whose registers store to shared memory widest.

    `lanes` are those that a warp has, 16 or 32. Raises LayoutError for other widths.
    """
    bits = (acc_bits, d.bits)
    narrow = lanes == 16
    if bits == (32, 32):
        return ("16x256b" if d.is_m_major else "16x128b") if narrow else "32x32b", False
    if bits == (32, 16):
        return "16x256b" if narrow or d.is_m_major else "32x32b", False
    if bits == (32, 8):
        return ("16x256b" if d.is_m_major else "16x32bx2") if narrow else "32x32b", False
    if bits == (16, 16):
        return "16x128b" if narrow or d.is_m_major else "32x32b", True
    if bits in ((16, 32), (16, 8)):
        return "16x128b" if narrow else "32x32b", True
    if acc_bits == 32 and d.bits in (6, 4) and not narrow:
        return "32x32b", False
    raise algebra.LayoutError(
        f"no tcgen05.ld of {lanes} lanes fits accumulators of {acc_bits} bits and D of {d.bits}"
    )


class MatrixStore(NamedTuple):
    """A stmatrix, or the ldmatrix that mirrors it: bits of its elements, matrices, transposed."""

    bits: int
    matrices: int
    transposed: bool


def matrix_store(
    acc_bits: int, d: EpilogueMatrix, shape: str, repeat: int, packed: bool = False
) -> MatrixStore | None:
    """Return the stmatrix that takes the registers of a tcgen05.ld; None if none does.

    `shape`, `repeat` and `packed` are those of the load.
    """
    bits = (acc_bits, d.bits)
    of_16 = (
        (bits == (32, 32) and not d.is_m_major and (shape, packed) == ("16x128b", False))
        or (bits == (32, 16) and (shape, packed) == ("16x256b", False))
        or (bits == (16, 16) and (shape, packed) == ("16x128b", True))
    )
    if of_16:
        return MatrixStore(16, 4 if repeat > 1 else 2, d.is_m_major)
    if bits == (32, 8) and d.is_m_major and (shape, packed) == ("16x256b", False):
        return MatrixStore(8, min(repeat, 4), True)
    return None


def epilogue_smem_atom(d: EpilogueMatrix, tile: tuple[Any, Any]) -> str:
    """Return the canonical layout of D in shared memory for an epilogue tile of layouts."""
    m, n = (_contiguous(algebra.make_layout(x)) for x in tile)
    return algebra.widest_smem_atom(not d.is_m_major, d.bits, (m, n))


def _contiguous(tile: algebra.Layout) -> int:
    """Return the extent of a tile that TMA takes at once: that of its mode of stride 1."""
    order = algebra.coalesce(algebra.right_inverse(algebra.make_layout((tile,))))
    return int(algebra.size(order.shape[0] if isinstance(order.shape, tuple) else order.shape))


def operand_stages(
    capacity: int,
    tile_mnk: tuple[int, int, int],
    a_bits: int,
    b_bits: int,
    barriers: int,
    reserved: int = 0,
) -> int:
    """Return how many stages of A and B fit into `capacity` bytes of shared memory.

    `barriers` are the bytes of barriers of a stage, `reserved` those for everything else.
    """
    m, n, k = tile_mnk
    stage = m * k * a_bits // 8 + n * k * b_bits // 8 + barriers
    return (capacity - reserved) // stage


class EpilogueStages(NamedTuple):
    """Buffers of an epilogue: of C and D, if D reuses those of C, and if stores are delayed."""

    c: int
    d: int
    reuses_c: bool
    delays_store: bool


def epilogue_stages(c_bits: int | None, tiles: int) -> EpilogueStages:
    """Return the buffers for an epilogue of `tiles` tiles; `c_bits` is None without a source."""
    d = min(tiles, 2)
    reuses = c_bits is not None and c_bits > 8
    c = max(min(tiles, 4), d + 1) if reuses else min(tiles, 4)
    return EpilogueStages(c, d, reuses, c_bits is None)


def multicasts(cluster_mn: tuple[int, int], blocks: int, operand: str) -> bool:
    """Tell whether TMA loads of "A", "B" or "SFB" go to several blocks of the cluster.

    A goes to blocks along N, B along M; scale factors of B always to both blocks of a pair.
    Raises LayoutError if a cluster's M is not a multiple of `blocks`.
    """
    m, n = cluster_mn
    if m % blocks:
        raise algebra.LayoutError(f"a cluster of {m} blocks along M is no multiple of {blocks}")
    if operand == "A":
        return n > 1
    return m // blocks > 1 or (operand == "SFB" and blocks == 2)


# sm_120 -------------------------------------------------------------------------------------------


def sm120_columns(tile_n: int) -> algebra.Layout:
    """Return the order of N that lets one ldmatrix feed several mma.sync of sm_120."""
    if tile_n % 32 == 0:
        return algebra.Layout((8, 2, 2), (1, 16, 8))
    if tile_n % 16 == 0:
        return algebra.Layout((8, 2), (1, 8))
    return algebra.make_layout((8,))


def sm120_matrix_loads(
    a_type: str, b_type: str, tile_n: int, unpacks: bool
) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
    """Return, for A and B, (matrices, bits of elements that ldmatrix unpacks to bytes or None).

    `unpacks` says that 4- and 6-bit elements are packed in shared memory (kind f8f6f4). Those of 6
    bits are loaded by 4 matrices, whatever `tile_n` is.
    """
    widths = {"e2m1": 4, "e3m2": 6, "e2m3": 6} if unpacks else {}
    of_a, of_b = widths.get(a_type), widths.get(b_type)
    count = 4 if tile_n % 32 == 0 or of_b == 6 else 2 if tile_n % 16 == 0 else 1
    return (4, of_a), (count, of_b)
