"""The least and the largest numbers of stretches of arrays that masks capture.

A mask like `docs[q] == docs[k]` depends on numbers that are loaded for each query and each key. If
a tile of queries may see a tile of keys can be told by the least and the largest of them, which a
small kernel finds ahead, for each block of elements and for 2, 4 and 8 blocks from it on: those of
any stretch are those of two such groups, one from its first block on, one up to its last (a sparse
table, Bender and Farach-Colton 2000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, from_dlpack
from basedsl_cute import arch
from basedsl_cute.ops.array_libraries import ArrayLibrary, known_libraries

BLOCK = arch.WARP_SIZE  # elements, one for each lane
LEVELS = 4
# A stretch is at most two groups long.
_MOST_BLOCKS = 2 << (LEVELS - 1)
_WARPS = 4
# Of fewer elements, as lengths of sequences, none has so many that it pays.
_LEAST_ELEMENTS = 4 * BLOCK
_KEPT: dict[Any, Any] = {
    cute.Boolean: cute.Int32,
    cute.Int32: cute.Int32,
    cute.Int64: cute.Int64,
}


def workspaces(lib: ArrayLibrary, arrays: Sequence[Any], most_rows: int) -> list[Any | None]:
    """A new array for the extremes of each of some captured arrays, None for one without: of other
    numbers, strided, small, or with more than `most_rows` rows, as a table of all scores.
    """
    return [_workspace(lib, x, most_rows) for x in arrays]


def _workspace(lib: ArrayLibrary, x: Any, most_rows: int) -> Any | None:
    if known_libraries.get(type(x)) is not lib:
        return None
    size = math.prod(x.shape)
    if size < _LEAST_ELEMENTS or size > most_rows * x.shape[-1]:
        return None
    record = ArrayRecord.of(x, "captured")
    kept = _KEPT.get(from_dlpack(*record.dtype))
    strides = tuple(math.prod(x.shape[i + 1 :]) for i in range(len(x.shape)))
    if kept is None or tuple(record.strides) != strides:
        return None
    return lib.empty((-(-size // BLOCK), LEVELS, 2), lib.dtype(kept), x)


@cute.kernel
def extremes_kernel(x: cute.Tensor, found: cute.Tensor):
    """Write the least and the largest number of 1, 2, 4 and 8 blocks from each block on."""
    lane, warp = arch.lane_idx(), arch.warp_idx()
    block = arch.block_idx()[0] * _WARPS + warp
    size = cute.size(x)
    flat = cute.make_tensor(x.iterator, cute.make_layout(size))
    if block < found.shape[0]:
        least: cute.Numeric = found.element_type(0)
        most = least
        for i in cute.range_constexpr(1 << (LEVELS - 1)):
            # Those behind the end are not asked for.
            own = found.element_type(flat[cute.min((block + i) * BLOCK + lane, size - 1)])
            least = own if i == 0 else cute.min(least, own)
            most = own if i == 0 else cute.max(most, own)
            if cute.const_expr((i + 1).bit_count() == 1):
                ends = arch.warp_reduction(least, cute.min), arch.warp_reduction(most, cute.max)
                if lane == 0:
                    level = i.bit_length()
                    found[block, level, 0], found[block, level, 1] = ends


@cute.jit
def find_extremes(captured: tuple, variant: cute.Constexpr, stream: cute.Constexpr):
    """Find the extremes of the arrays that a mask captures, into those behind all `captured`."""
    pairs = pairs_of(captured, variant)
    for x, found in cute.const_expr([pair for pair in pairs if pair[1] is not None]):
        extremes_kernel(x, found).launch(
            grid=(cute.ceil_div(found.shape[0], _WARPS), 1, 1),
            block=(_WARPS * BLOCK, 1, 1),
            stream=stream,
        )


def pairs_of(captured: Sequence[Any], variant: Any) -> list[tuple[Any, Any]]:
    """The arrays that a mask captures, each with its extremes, or None."""
    if variant.mask is None:
        return []
    first, count = variant.mask.offset, variant.mask.count
    arrays, found = captured[first : first + count], captured[first + count :]
    return list(zip(arrays, found or (None,) * count, strict=True))


def extremes_between(found: cute.Tensor, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """The least and the largest number of a captured array from element `low` to `high`, or less
    and more than these, by its extremes `found`, and if they are known.
    """
    last = cute.max(cute.min(cute.Int32(high) // BLOCK, found.shape[0] - 1), 0)
    first = cute.min(cute.max(cute.Int32(low) // BLOCK, 0), last)
    count = last - first + 1
    level = cute.Int32(0)
    for i in range(1, LEVELS):
        level = cute.where(count >= 1 << i, i, level)
    second = last + 1 - (1 << level)
    return (
        cute.min(found[first, level, 0], found[second, level, 0]),
        cute.max(found[first, level, 1], found[second, level, 1]),
        count <= _MOST_BLOCKS,
    )
