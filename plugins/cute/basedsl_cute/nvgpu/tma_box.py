"""The box of a TMA copy: what one instruction moves between a tile of a tensor and shared memory.

A box is what is contiguous in shared memory at once: the walk through the shared layout, as far as
it steps through whole modes of the global tensor, the first of which is the contiguous one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from basedsl.errors import DSLTypeError
from basedsl_cute import algebra
from basedsl_cute.lowering.tensor_map import MAX_BOX, SWIZZLE_BYTES
from basedsl_cute.tensor import Tensor

_SMEM_UNIT = 128  # bytes; boxes begin at multiples of it in shared memory


class Box(NamedTuple):
    """What one instruction copies: `order[i]` is the tensor's mode that is the map's mode i."""

    order: tuple[int, ...]
    extents: tuple[int, ...]
    swizzle: int

    @property
    def size(self) -> int:
        return math.prod(self.extents)


def flat_modes(tensor: Tensor) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    layout = tensor.layout
    if not isinstance(layout, algebra.Layout) or tensor.memspace != "gmem":
        raise DSLTypeError(f"TMA copies to and from plain tensors in global memory, not {tensor}")
    shape, stride = layout.shape, layout.stride
    if not isinstance(shape, tuple):
        shape, stride = (shape,), (stride,)
    if any(isinstance(n, tuple) for n in shape):
        raise DSLTypeError(f"TMA needs flat modes, not {layout}", hint="flatten the tensor")
    return shape, stride


def find_box(smem_layout: Any, tiler: tuple[int, ...], stride: tuple[Any, ...], bits: int) -> Box:
    """The largest box that one instruction can copy between a tile and its shared layout."""
    swizzle, outer = 0, smem_layout
    if isinstance(smem_layout, algebra.ComposedLayout):
        inner = algebra.recast_layout(8, bits, smem_layout.inner)
        if (inner.base, inner.shift) != (4, 3) and inner.bits:
            raise DSLTypeError(f"TMA cannot write shared memory swizzled as {smem_layout}")
        swizzle, outer = inner.bits, smem_layout.outer
    if int(algebra.size(outer.shape)) != math.prod(tiler):
        raise DSLTypeError(f"the shared layout {smem_layout} is not one tile of {tiler}")
    leading = [mode for mode, d in enumerate(stride) if type(d) is int and d == 1]
    walk = _walk(outer, tiler)
    order: list[int] = []
    extents: list[int] = []
    for extent, step, mode in walk:
        if step != 1 or mode in order or (not order and mode not in leading):
            break
        order.append(mode)
        extents.append(_most(extent, math.prod(extents) * bits // 8, mode))
        if extents[-1] < extent:
            break
    if not order:
        raise DSLTypeError(
            f"the shared layout {smem_layout} is not contiguous in the mode that is contiguous in "
            f"global memory (strides {stride})"
        )
    row = extents[0] * bits // 8
    if swizzle and row > SWIZZLE_BYTES[swizzle]:
        raise DSLTypeError(f"rows of {row} bytes are swizzled within {SWIZZLE_BYTES[swizzle]}")
    if math.prod(extents) < math.prod(tiler):
        _check_piece(extents, bits)
    rest = [mode for mode in range(len(stride)) if mode not in order]
    return Box((*order, *rest), (*extents, *[1] * len(rest)), swizzle)


def _most(extent: int, each: int, mode: int) -> int:
    """The largest part of a mode that a box can have: what divides it, so that boxes of one extent
    are the tile, and is whole units of shared memory. `each` is the bytes of one index.
    """
    if extent <= MAX_BOX:
        return extent
    unit = _SMEM_UNIT // math.gcd(_SMEM_UNIT, each)
    part = next((n for n in range(MAX_BOX, 0, -1) if extent % n == 0 and n % unit == 0), None)
    if part is None:
        raise DSLTypeError(
            f"a tile of {extent} elements in mode {mode} is more than one TMA box, which has at "
            f"most {MAX_BOX}, and cannot be split into equal boxes of whole {_SMEM_UNIT} bytes",
            hint=f"take an extent up to {MAX_BOX}, or a multiple of {unit} that divides into "
            "equal parts of at most that",
        )
    return part


def _check_piece(extents: Sequence[int], bits: int) -> None:
    """A tile of several boxes has each begin where TMA can write: PTX ISA, cp.async.bulk.tensor,
    "the shared memory address is a multiple of 128".
    """
    size = math.prod(extents) * bits // 8
    if size % _SMEM_UNIT:
        raise DSLTypeError(
            f"the tile is copied in boxes of {tuple(extents)} elements, {size} bytes of shared "
            f"memory each, and TMA writes to multiples of {_SMEM_UNIT} bytes",
            hint="make what is contiguous both in the tile and in its shared layout larger",
        )


def _walk(outer: Any, tiler: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """(extent, step, mode of the tile) of each stretch of the shared layout, in address order."""
    tile = algebra.make_identity_layout(tiler)
    along = algebra.coalesce(algebra.composition(tile, algebra.right_inverse(outer)))
    shape, stride = along.shape, along.stride
    if not isinstance(shape, tuple):
        shape, stride = (shape,), (stride,)
    found = []
    for extent, step in zip(shape, stride, strict=True):
        if extent == 1:
            continue
        mode = step.mode[0] if isinstance(step.mode, tuple) else step.mode
        found.append((int(extent), int(step.value), int(mode)))
    return found


def divided(box: Box, parts: int, bits: int) -> Box:
    """The part of a box that each of several blocks loads: a slice of its slowest mode."""
    if parts == 1:
        return box
    extents = list(box.extents)
    slowest = max(i for i, n in enumerate(extents) if n > 1)
    if extents[slowest] % parts:
        raise DSLTypeError(f"a box of {box.extents} cannot be divided among {parts} blocks")
    extents[slowest] //= parts
    _check_piece(extents, bits)
    return box._replace(extents=tuple(extents))
