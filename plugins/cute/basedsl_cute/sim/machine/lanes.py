"""Lanes of a group: which threads they are, as arrays and as coordinates."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.sim.affine import Affine, LaneGrid, Recent


class _Axis(NamedTuple):
    kind: str  # "block" or "thread"
    at: int  # 0, 1, 2 for x, y, z
    extent: int
    step: int


def _axes(block: tuple[int, int, int], box: tuple[int, int, int], of_warp: int) -> list[_Axis]:
    """The axes of lanes, the fastest last: those of the box and of a block whose extent is not 1.

    The x of a block is cut at its lowest 4, at its warps, and at pairs of these, so that quotients
    and remainders by what tiles are made of are sums of coordinates too.
    """
    axes = [_Axis("block", at, box[at], 1) for at in (2, 1, 0)]
    axes += [_Axis("thread", at, block[at], 1) for at in (2, 1)]
    left, parts, step = block[0], [], 1
    for part in (4, of_warp // 4, 2, 2):
        if part > 1 and left % part == 0 and left > part:
            parts.append(_Axis("thread", 0, part, step))
            left, step = left // part, step * part
    parts.append(_Axis("thread", 0, left, step))
    axes += reversed(parts)
    return [axis for axis in axes if axis.extent > 1] or axes[-1:]


class Lanes:
    """Thread indices and warps of the lanes of a group, which depend on the block's shape alone.

    `first` and `count` choose threads of the block by linear index; `box` repeats them for a box of
    blocks, by its extents in x, y, z. A full warp has `of_warp`.
    """

    def __init__(
        self,
        block: tuple[int, int, int],
        first: int,
        count: int,
        box: tuple[int, int, int],
        of_warp: int,
    ) -> None:
        self.block = block
        self.of_warp = of_warp
        self.first = first
        self.threads = count  # of one block
        self.box = box
        self.blocks = box[0] * box[1] * box[2]
        self.size = count * self.blocks  # lanes
        self._axes = _axes(block, box, of_warp)
        self.grid = LaneGrid(tuple([axis.extent for axis in self._axes]))  # of whole blocks
        # Where shuffles by one amount read, by kind and operands; kept, as few recur.
        self.sources = Recent(16)
        self._repeated = Recent(4)

    def affine(self, kind: str, at: int, base: int) -> Affine:
        """The coordinate of each lane's "block" in the box, or "thread", along an axis, and `base`
        more, int32.
        """
        parts = [axis.step if axis[:2] == (kind, at) else 0 for axis in self._axes]
        return Affine(self.grid, base, tuple(parts), np.dtype(np.int32))

    @cached_property
    def block_parts(self) -> tuple[int, ...]:
        """The coefficients of `block_number`."""
        steps = {"thread": (0, 0, 0), "block": (1, self.box[0], self.box[0] * self.box[1])}
        return tuple([steps[axis.kind][axis.at] for axis in self._axes])

    @cached_property
    def affine_linear(self) -> Affine:
        """The linear index of each lane's thread in its block, int32."""
        x, y, _ = self.block
        steps = {"block": (0, 0, 0), "thread": (1, x, x * y)}
        parts = [axis.step * steps[axis.kind][axis.at] for axis in self._axes]
        return Affine(self.grid, 0, tuple(parts), np.dtype(np.int32))

    @cached_property
    def block_places(self) -> tuple[Any, Any, Any]:
        """The x, y and z in the box of each of its blocks, int32."""
        x, y, _ = self.box
        number = np.arange(self.blocks, dtype=np.int32)
        return number % x, number // x % y, number // (x * y)

    @cached_property
    def linear(self) -> Any:
        """The linear index of each lane's thread in its block, int32."""
        line = np.arange(self.first, self.first + self.threads, dtype=np.int32)
        return np.tile(line, self.blocks)

    @cached_property
    def tid(self) -> tuple[Any, Any, Any]:
        """The x, y and z of each lane's thread, int32."""
        x, y, _ = self.block
        linear = self.linear
        return linear % np.int32(x), linear // np.int32(x) % np.int32(y), linear // np.int32(x * y)

    @cached_property
    def tid_index(self) -> tuple[Any, Any, Any]:
        """`tid` as int64."""
        x, y, z = (part.astype(np.int64) for part in self.tid)
        return x, y, z

    def repeated(self, count: int) -> Any:
        """The numbers of all lanes, `count` times."""
        found = self._repeated.get(count)
        if found is None:
            found = self._repeated[count] = np.tile(np.arange(self.size), count)
        return found

    @cached_property
    def lane(self) -> Any:
        """The number of each lane in its warp, int32."""
        return self.linear % np.int32(self.of_warp)

    @cached_property
    def warp(self) -> Any:
        """The number of each lane's warp in its block, int32."""
        return self.linear // np.int32(self.of_warp)

    @cached_property
    def block_number(self) -> Any:
        """The number of each lane's block among those of the group."""
        return np.repeat(np.arange(self.blocks), self.threads)

    @cached_property
    def warp_starts(self) -> Any:
        """The first lane of each warp, `(warps,)`."""
        starts = np.arange(0, self.threads, self.of_warp)
        return (np.arange(self.blocks)[:, None] * self.threads + starts).ravel()

    @cached_property
    def warp_sizes(self) -> Any:
        """The lanes of each warp, `(warps,)`."""
        starts = np.arange(0, self.threads, self.of_warp)
        return np.tile(np.minimum(self.threads - starts, self.of_warp), self.blocks)

    @cached_property
    def warp_start(self) -> Any:
        """The first lane of each lane's warp."""
        return np.repeat(self.warp_starts, self.warp_sizes)

    @cached_property
    def warp_size(self) -> Any:
        """The number of lanes of each lane's warp."""
        return np.repeat(self.warp_sizes, self.warp_sizes)


@lru_cache(maxsize=8)
def lanes_of(
    block: tuple[int, int, int], first: int, count: int, box: tuple[int, int, int], of_warp: int
) -> Lanes:
    """The lanes of a group, which several launches share."""
    return Lanes(block, first, count, box, of_warp)
