"""The box of a TMA copy: what one instruction moves between a tile of a tensor and shared memory.

A box is what is contiguous in shared memory at once: the walk through the shared layout, as far as
it steps through whole modes of the global tensor, the first of which is the contiguous one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from basedsl.errors import DSLTypeError
from basedsl_cute import algebra
from basedsl_cute.lowering.tensor_map import MAX_BOX, SWIZZLE_BYTES
from basedsl_cute.tensor import Tensor


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
        extents.append(_most(extent))
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
    rest = [mode for mode in range(len(stride)) if mode not in order]
    return Box((*order, *rest), (*extents, *[1] * len(rest)), swizzle)


def _most(extent: int) -> int:
    """The largest number of elements that a box can have of a mode, which divides it."""
    return next(n for n in range(min(extent, MAX_BOX), 0, -1) if extent % n == 0)


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


def divided(box: Box, parts: int) -> Box:
    """The part of a box that each of several blocks loads: a slice of its slowest mode."""
    if parts == 1:
        return box
    extents = list(box.extents)
    slowest = max(i for i, n in enumerate(extents) if n > 1)
    if extents[slowest] % parts:
        raise DSLTypeError(f"a box of {box.extents} cannot be divided among {parts} blocks")
    extents[slowest] //= parts
    return box._replace(extents=tuple(extents))
