"""TMA copies of pixels in the order of a convolution's filter, "im2col" (sm_90 and later).

A convolution is a product of matrices: a row for each position of the filter in each image, and a
column for each channel at each place in the filter. `make_im2col_tma_atom` has the first operand's
tiles come from the images themselves. Its coordinate tensor has the shape of that matrix,
(positions, (C, S, R)), and kernels tile and partition it as that of a matrix in memory:

    atom, tma_x = make_im2col_tma_atom(CopyBulkTensorIm2ColG2SOp(), x, smem_layout, (128, 64),
                                       filter_shape=(3, 3), padding=1, stride=2)
    ...
    gA = cute.local_tile(tma_x, (128, 64), (block, None))
    tAsA, tAgA = tma_partition(atom, 0, cute.make_layout(1),
                               cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
    cute.copy(atom, tAgA[None, k], tAsA[None, stage], tma_bar_ptr=barrier)

PTX ISA 5.5.4, tensor "im2col mode", and 9.7.9.27, "cp.async.bulk.tensor".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from basedsl import DSLTypeError, is_dynamic
from basedsl_cute import algebra
from basedsl_cute.algebra import ComposedLayout, Layout
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.tma import IM2COL, IM2COL_STORE
from basedsl_cute.host.tensor_map_argument import (
    TensorMapValue,
    encode_im2col_map,
    too_large_a_filter,
)
from basedsl_cute.nvgpu.tma_atom import (
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileS2GOp,
    TmaAtom,
    TmaInfo,
)
from basedsl_cute.nvgpu.tma_box import (
    Box,
    Modes,
    check_piece,
    find_box,
    leaves,
    modes_of,
    paths_of,
    share_of_box,
)
from basedsl_cute.tensors.make_tensor import make_identity_tensor
from basedsl_cute.tensors.tensor import Tensor


@dataclass(frozen=True)
class CopyBulkTensorIm2ColG2SOp(CopyBulkTensorTileG2SOp):
    """The TMA copy of pixels from global to shared memory (PTX `cp.async.bulk.tensor.im2col`).

    `make_im2col_tma_atom` makes its atom; otherwise it is as `CopyBulkTensorTileG2SOp`.
    """


@dataclass(frozen=True)
class CopyBulkTensorIm2ColG2SMulticastOp(CopyBulkTensorTileG2SMulticastOp):
    """The TMA copy of pixels from global memory to several blocks of the cluster.

    `make_im2col_tma_atom` makes its atom; otherwise it is as `CopyBulkTensorTileG2SMulticastOp`.
    """


@dataclass(frozen=True)
class CopyBulkTensorIm2ColS2GOp(CopyBulkTensorTileS2GOp):
    """The TMA copy of pixels from shared to global memory (PTX `im2col_no_offs`).

    `make_im2col_tma_atom` makes its atom, of a filter of one pixel without padding; otherwise it is
    as `CopyBulkTensorTileS2GOp`.
    """


IM2COL_OPS = (
    CopyBulkTensorIm2ColG2SOp,
    CopyBulkTensorIm2ColG2SMulticastOp,
    CopyBulkTensorIm2ColS2GOp,
)


class Filter(NamedTuple):
    """A convolution's filter in each spatial mode, the fastest first: the first and the last of its
    positions, the latter behind the extent - 1, the steps of positions, and those within it.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]
    dilation: tuple[int, ...]

    def counts(self, sizes: Sequence[Any]) -> list[Any]:
        """Return how many positions there are in images of `sizes` pixels."""
        return [
            (size - 1 + (high - low)) // step + 1
            for size, low, high, step in zip(sizes, self.lower, self.upper, self.steps, strict=True)
        ]


class Im2colAtom(TmaAtom):
    """An im2col copy of one tensor of images. `make_im2col_tma_atom` makes it.

    `counts` are the positions of the filter in each spatial mode, the fastest first.
    """

    def __init__(
        self,
        tensor_map: TensorMapValue,
        op: Any,
        dtype: Any,
        box: Box,
        places: Filter,
        counts: Sequence[Any],
    ) -> None:
        super().__init__(tensor_map, op, dtype, box)
        self.places = places
        self.counts = tuple(counts)

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self.tensor_map, *(n for n in self.counts if is_dynamic(n)))

    def __dsl_static__(self) -> Any:
        known = tuple(None if is_dynamic(n) else n for n in self.counts)
        return (*super().__dsl_static__(), self.places, known)

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> Im2colAtom:
        given = iter(parts[1:])
        counts = [next(given) if is_dynamic(n) else n for n in self.counts]
        return Im2colAtom(parts[0], self.op, self.dtype, self.box, self.places, counts)

    def _instruction(self, coordinate: Any) -> tuple[list[Any], dict[str, Any]]:
        position, channel, *inside = leaves(coordinate)
        places, first = self.places, []
        for count, low, step in zip(self.counts, places.lower, places.steps, strict=True):
            first.append(position % count * step + low)
            position = position // count
        where = [channel, *first, position]
        if isinstance(self.op, CopyBulkTensorIm2ColS2GOp):
            return where, {"mode": IM2COL_STORE}
        offsets = [i * d for i, d in zip(inside, places.dilation, strict=True)]
        return where, {"mode": IM2COL, "offsets": offsets}


@takes_location
def make_im2col_tma_atom(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    cta_tiler: Any,
    filter_shape: Sequence[int],
    *,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    num_multicast: int = 1,
) -> TmaInfo:
    """Make a TMA atom for tiles of the matrix that a convolution multiplies, and its coordinate
    tensor, of the shape (positions, (C, S, R)). Host code only.

    - `op`: one of the im2col operations of this module.
    - `gmem_tensor`: images, of the modes (N, W, C), (N, H, W, C) or (N, D, H, W, C). The stride of
      channels is 1, the others are multiples of 16 bytes.
    - `smem_layout`: the layout of one tile in shared memory, swizzled or not.
    - `cta_tiler`: the tile's extents, (positions, channels).
    - `filter_shape`: the filter's extents in the spatial modes, in the tensor's order.
    - `padding`, `stride`, `dilation`: numbers of pixels, for all spatial modes or one for each in
      the tensor's order; a padding may be a pair (before, behind). Positions go through W, then H,
      D and the images.
    - `num_multicast`: the number of blocks, each of which loads an equal part of the tile for all.

    Raises DSLTypeError if no such copy moves the tile, and for a filter beyond the TMA unit's:
    padding up to 128, or 16 of three spatial modes, and steps up to 8.
    """
    if not isinstance(op, IM2COL_OPS):
        raise DSLTypeError(
            f"{op!r} is no im2col copy", hint="cpasync.CopyBulkTensorIm2ColG2SOp(), for instance"
        )
    if num_multicast != 1 and not isinstance(op, CopyBulkTensorIm2ColG2SMulticastOp):
        raise DSLTypeError(
            f"num_multicast={num_multicast} needs CopyBulkTensorIm2ColG2SMulticastOp, not {op!r}"
        )
    modes = modes_of(gmem_tensor)
    spatial = len(modes.shape) - 2
    if not 1 <= spatial <= 3 or type(modes.stride[-1]) is not int or modes.stride[-1] != 1:
        raise DSLTypeError(
            "an im2col copy is of images (N, W, C), (N, H, W, C) or (N, D, H, W, C) with "
            "contiguous channels",
            notes=((f"the tensor is {gmem_tensor}", None),),
        )
    places = _filter(filter_shape, padding, stride, dilation, spatial)
    dtype = gmem_tensor.element_type
    images, *sizes, channels = modes.shape
    counts = places.counts(sizes[::-1])
    if isinstance(op, CopyBulkTensorIm2ColS2GOp) and (
        math.prod(filter_shape) != 1 or any(places.lower) or any(places.upper)
    ):
        raise DSLTypeError("an im2col store has a filter of one pixel, without padding")
    for mode, count in enumerate(counts):
        if type(count) is int and count < 1:  # others are checked by the host
            raise DSLTypeError(too_large_a_filter(mode))
    shape = (math.prod(counts, start=images), (channels, *reversed(tuple(filter_shape))))
    coordinates = make_identity_tensor(shape)
    box = _box(smem_layout, coordinates, cta_tiler, dtype.width)
    part = share_of_box(box, num_multicast, dtype.width)
    tensor_map = encode_im2col_map(
        dtype,
        gmem_tensor.iterator.toint(),
        [channels, *sizes[::-1], images],
        [*modes.stride[-2:0:-1], modes.stride[0]],
        (places.lower, places.upper),
        (part.extents[0], part.extents[1]),
        places.steps,
        part.swizzle,
        modes=modes.names[::-1],
    )
    atom = Im2colAtom(tensor_map, op, dtype, box, places, counts)
    return TmaInfo(atom, coordinates, smem_layout)


def _filter(shape: Any, padding: Any, stride: Any, dilation: Any, spatial: int) -> Filter:
    """Return the filter in the map's order; DSLTypeError unless all is given for each mode."""
    if not isinstance(shape, Sequence) or not _are_positive(shape, spatial):
        raise DSLTypeError(f"filter_shape= is {spatial} extents of a filter, not {shape}")
    found = {}
    for name, given in (("stride", stride), ("dilation", dilation)):
        each = (given,) * spatial if type(given) is int else tuple(given)
        if not _are_positive(each, spatial):
            raise DSLTypeError(f"{name}= is a positive number, or {spatial} of them, not {given}")
        found[name] = each
    pads: Sequence[Any] = (padding,) * spatial if isinstance(padding, int) else tuple(padding)
    pairs = [(pad, pad) if isinstance(pad, int) else tuple(pad) for pad in pads]
    if len(pairs) != spatial or any(len(x) != 2 or min(x) < 0 for x in pairs):
        raise DSLTypeError(
            f"padding= is a number, or {spatial} numbers or pairs, none negative, not {padding}"
        )
    upper = [
        after - d * (n - 1)
        for (_, after), n, d in zip(pairs, shape, found["dilation"], strict=True)
    ]
    return Filter(
        tuple(-before for before, _ in reversed(pairs)),
        tuple(reversed(upper)),
        found["stride"][::-1],
        found["dilation"][::-1],
    )


def _are_positive(numbers: Sequence[Any], count: int) -> bool:
    return len(numbers) == count and all(type(n) is int and n > 0 for n in numbers)


def _box(smem_layout: Any, coordinates: Tensor, tiler: Any, bits: int) -> Box:
    """Return the box of one copy: channels, then positions of the filter."""
    if not isinstance(tiler, Sequence) or len(tiler) != 2:
        raise DSLTypeError(f"a tile of an im2col copy is (positions, channels), not {tiler}")
    shape = coordinates.layout.shape
    tile = algebra.composition(coordinates.layout, tuple(tiler))
    paths = tuple(paths_of(shape))
    # Of all modes only the channels, the second leaf, are contiguous.
    steps = tuple(int(i == 1) for i in range(len(paths)))
    box = find_box(smem_layout, tile, Modes(leaves(shape), steps, paths), bits)
    if box.order[1] != 0:
        raise DSLTypeError(
            f"a tile of {tiler} has channels of several places in the filter",
            hint=f"take tiles of as many channels as the images have, or a divisor: {shape[1][0]}",
        )
    if any(n > 1 for n in box.extents[2:]):
        box = box._replace(extents=(*box.extents[:2], *[1] * (len(paths) - 2)))
        check_piece(box.extents, bits)
    return box
