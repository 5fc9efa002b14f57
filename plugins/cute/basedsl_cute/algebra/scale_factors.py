"""Layouts of block scale factors in global and shared memory.

128 rows of 4 factors of 8 bits make a chunk of 512 bytes, in the order in which `tcgen05.cp` of
shape 4x32x128b brings them to tensor memory (PTX ISA, "Scale factors"; CUTLASS's C++
header `sm100_blockscaled_layout.hpp`). Layouts have a mode of stride 0 for the vector of elements
that share a factor, so that they partition as the operand does.
"""

from __future__ import annotations

from typing import Any

from .atom_tables import MmaAtomLayout
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import tuple_rank
from .layout import Layout
from .products import tile_to_shape

SCALE_ROWS, SCALE_COLUMNS = 128, 4
"""The rows and factors of a chunk."""

_CHUNK = SCALE_ROWS * SCALE_COLUMNS
_ROWS, _ROW_STRIDES = (32, 4), (16, 4)


@takes_location
def scale_atom(vector: int, is_k_major: bool = True) -> Layout:
    """Return the chunk (rows, K) of factors that ``vector`` elements share each; or (K, rows).

    >>> print(scale_atom(16))
    ((32,4),(16,4)):((16,4),(0,1))
    """
    rows, factors = (_ROWS, _ROW_STRIDES), ((vector, SCALE_COLUMNS), (0, 1))
    first, second = (rows, factors) if is_k_major else (factors, rows)
    return Layout((first[0], second[0]), (first[1], second[1]))


@takes_location
def tile_scales(shape: Any, vector: int, is_k_major: bool = True) -> Layout:
    """Return the layout of the factors of a whole (MN, K) or (MN, K, L) matrix in global memory.

    Chunks follow each other along the contiguous mode, then along the other, then L. Rows are
    padded to whole chunks.
    """
    if tuple_rank(shape) not in (2, 3):
        raise LayoutError(f"scale factors have a shape (MN, K) or (MN, K, L), not {shape}")
    order = ((1, 0, 2) if is_k_major else (0, 1, 2))[: tuple_rank(shape)]
    layout: Layout = tile_to_shape(scale_atom(vector, is_k_major), shape, order)
    return layout


@takes_location
def tile_scale_tensor(shape: Any) -> Layout:
    """Return the layout of a matrix (MN, factors, L) of scale factors, without vectors."""
    layout: Layout = tile_to_shape(
        Layout((_ROWS, (SCALE_COLUMNS,)), (_ROW_STRIDES, (1,))), shape, (1, 0, 2)
    )
    return layout


@takes_location
def smem_scales(rows: int, k: int, vector: int, mma_k: int, stages: int | None = None) -> Layout:
    """Return the layout (MMA, 1, MMA_K[, stage]) of one block's scale factors in shared memory.

    ``rows`` are those of A of a block, or N of the whole MMA, ``k`` and ``mma_k`` the extents of
    the tile and of one instruction. Rows are padded to 128. LayoutError unless the tile is a whole
    number of chunks along K.
    """
    if k % (vector * SCALE_COLUMNS) or mma_k % vector:
        raise LayoutError(
            f"a tile of K {k} has no whole number of {SCALE_COLUMNS} factors of {vector} elements"
        )
    chunks = -(-rows // SCALE_ROWS)
    factors = mma_k // vector
    steps = k // vector // SCALE_COLUMNS
    shape: Any = (((_ROWS, chunks), (vector, factors)), 1, (SCALE_COLUMNS // factors, steps))
    stride: Any = (((_ROW_STRIDES, _CHUNK), (0, 1)), 0, (factors, chunks * _CHUNK))
    if stages is not None:
        shape, stride = (*shape, stages), (*stride, steps * chunks * _CHUNK)
    return Layout(shape, stride)


@takes_location
def warp_scales(atom: MmaAtomLayout, side: str) -> Layout:
    """Return (thread, element) -> position in (M, K) or (N, K) of the factors that a lane of a
    block-scaled ``mma.sync`` holds: those of one row of A ("SFA"), or one column of B ("SFB").

    PTX ISA 9.7.14.5.14, "mma.sync.m16n8k32" with block scaling: of four lanes that share a row of A
    two hold the factors, those of row 8 and up the odd ones.
    """
    m, n, k = atom.shape_mnk
    if side == "SFA":
        return Layout(((2, 2, 8), k), ((8, 0, 1), m))
    return Layout(((4, 8), k), ((0, 1), n))
