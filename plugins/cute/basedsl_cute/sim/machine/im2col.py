"""Pixels of an im2col copy of the TMA unit (PTX ISA 5.5.4, "im2col mode").

A tensor of images has channels, 1 to 3 spatial modes and images. A copy takes pixels in the order
of the positions of a convolution's filter: in each spatial mode from the lower corner of the
bounding box to its upper one, by steps, then on to the next image. What it reads at a position is
moved by the filter's offsets, and is zero outside of the image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.device.tensor_map import TensorMap
from basedsl_cute.hardware.tensor_map_format import CORNER_BITS
from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine.state import Group
from basedsl_cute.sim.site import Site


def moved(g: Group, tensor: TensorMap, mode: str, offsets: Any, lane: int, site: Site) -> TensorMap:
    """The tensor map of an instruction in `mode`, with the filter's offsets, None for a store.
    Raises SimulationError for a map of another mode, for offsets beyond their bits, and for a store
    of pixels outside of the images.
    """
    pixels = tensor.pixels
    if (mode == "im2col") != (pixels is not None):
        other = "tiles" if pixels is None else "im2col copies"
        raise SimulationError(
            f"a TMA copy in mode {mode} by a tensor map of {other}", site, g.thread(lane)
        )
    if pixels is None:
        return tensor
    spatial = len(pixels.lower)
    if offsets is None:
        if min(pixels.lower) < 0 or max(pixels.upper) > 0:
            raise SimulationError(
                f"an im2col store with the corners {pixels.lower} and {pixels.upper}",
                site,
                g.thread(lane),
                hint="its positions, from the first to the extents - 1 + the second, are partly "
                "outside of the images: make the atom of a store without padding",
            )
        moves: tuple[int, ...] = (0,) * spatial
    else:
        moves = tuple(int(offset[lane]) & 0xFFFF for offset in offsets)
    limit = 1 << CORNER_BITS[spatial]
    if len(moves) != spatial or max(moves) >= limit:
        raise SimulationError(
            f"the offsets {moves} of an im2col copy: {spatial} of them, each below {limit}",
            site,
            g.thread(lane),
        )
    return tensor._replace(pixels=pixels._replace(offsets=moves))


def elements(g: Group, tensor: TensorMap, start: Any, lane: int, site: Site) -> tuple[Any, Any]:
    """Byte offsets of a copy's elements from the tensor's beginning, and which of them are inside
    of it. Raises SimulationError for a first pixel that is no position of the filter.
    """
    pixels = tensor.pixels
    assert pixels is not None
    spatial = len(pixels.lower)
    channel, *first, image = start
    steps, sizes = tensor.element_strides[1:-1], tensor.extents[1:-1]
    counts = [
        (size - 1 + high - low) // step + 1
        for size, high, low, step in zip(sizes, pixels.upper, pixels.lower, steps, strict=True)
    ]
    linear, before = 0, 1
    for at, low, step, count in zip(first, pixels.lower, steps, counts, strict=True):
        index, rest = divmod(at - low, step)
        if rest or not 0 <= index < count:
            raise SimulationError(
                f"an im2col copy begins at pixel {tuple(first)}, which is no position of the "
                "filter",
                site,
                g.thread(lane),
                notes=(
                    (f"positions begin at {pixels.lower}, {tuple(steps)} apart", None),
                    (f"there are {tuple(counts)} of them, the fastest mode first", None),
                ),
            )
        linear, before = linear + index * before, before * count
    number = linear + np.arange(tensor.box[1], dtype=np.int64)
    channels = channel + np.arange(tensor.box[0], dtype=np.int64)
    images = image + number // before
    inside = (images >= 0) & (images < tensor.extents[-1])
    offset = images * tensor.strides[-1]
    for mode in range(spatial):
        index = pixels.lower[mode] + steps[mode] * (number % counts[mode]) + pixels.offsets[mode]
        number = number // counts[mode]
        inside &= (index >= 0) & (index < sizes[mode])
        offset = offset + index * tensor.strides[1 + mode]
    of_channel = (channels >= 0) & (channels < tensor.extents[0])
    both = inside[:, None] & of_channel[None, :]
    return (offset[:, None] + channels[None, :] * tensor.strides[0]).ravel(), both.ravel()
