"""Parts of products that communicate while tensor cores multiply: the order of tiles, the memory of
the ranks, the chunks that idle warps move, and the count of launches.

The rows of the larger matrix are in as many *shards* as there are ranks. The kernels are those of
`ops.hopper.gemm` with shards as batches: warp 0 of the producer's warpgroup loads tiles; its other
three warps, idle there, move data between ranks. The memory of a rank has two halves, which
launches take in turns: when a launch of this rank has ended, it has had data of all peers' launches
of that turn, so they have ended the launch before, and its half is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.distributed.signals import now
from basedsl_cute.ops.hopper.config import Config, HopperGemmKinds
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import StaticPersistentTileScheduler, WorkTileInfo

MOVERS = 3
"""Warps of a block that move data between ranks."""

VECTOR = 8  # elements of 16 bits that a thread moves at once
_UNROLL = 4
_TURN, _BEGUN, _TAKEN = range(3)  # the counters that a launch uses; of the last there are two
COUNTERS = 4
"""The counters of all launches; what others a kernel uses come after them."""
_READ = 7  # the hardware barrier of the warps that have read the number of the launch


@dataclass(frozen=True)
class ProductPlan:
    """The static shape of a product of elements of `dtype`, of 16 bits: the configuration `cfg` of
    its kernel, and the chunk of X, `lines` x `columns`, that is pushed together. The
    lines divide the rows of a tile; the columns are 64, 128 or 256. Of a tile that stays in
    registers while the next one is multiplied, a piece is stored to its rank after `every` steps.
    """

    dtype: Any
    cfg: Config
    lines: int = 64
    columns: int = 128
    every: int = 1

    @property
    def kinds(self) -> HopperGemmKinds:
        """A (M, K, shards), B (N, K) and C (M, N, shards), each with rows one after the other."""
        row = sm90.LayoutEnum.ROW_MAJOR
        return HopperGemmKinds(self.dtype, self.dtype, self.dtype, row, row, row, True)


class ShardScheduler(StaticPersistentTileScheduler):
    """The tiles of one block, shard after shard, beginning with the shard `first` of `shards`."""

    def __init__(
        self, params: Any, current: Any, step: Any, place: Any, first: Any, shards: Any
    ) -> None:
        super().__init__(params, current, step, place)
        self.first = first
        self.shards = shards

    @classmethod
    def beginning(cls, params: Any, first: Any, shards: Any) -> ShardScheduler:
        """Make the scheduler of this block."""
        block, grid = arch.block_idx(), arch.grid_dim()
        return cls(params, block[2], grid[2], (block[0], block[1]), first, shards)

    @takes_location
    def get_current_work(self) -> WorkTileInfo:
        """Return the current tile (M, N, shard), and whether it exists."""
        (m, n, turn), is_valid = super().get_current_work()
        return WorkTileInfo((m, n, (self.first + turn) % self.shards), is_valid)


def half_address(w: Any, rank: Any, turn: Any, half_bytes: Any) -> Any:
    """Return the address of the half of the memory of `rank` that launch number `turn` uses."""
    half = (turn & 1).to(cute.Int64) * half_bytes
    return w.peer(rank).iterator.toint() + half


def matrices_at(address: Any, dtype: Any, shape: tuple[Any, ...], stride: Any = None) -> Any:
    """Return the tensor (rows, columns, ...) at an address, rows one after the other; `stride` is
    that of the last mode, if it is not the size of what is before it.
    """
    rows, columns, *rest = shape
    strides = [cute.assume(columns, VECTOR), 1]
    step = cute.Int64(rows) * strides[0]
    for n in rest:
        strides.append(cute.assume(step, VECTOR))
        step = step * n
    if stride is not None:
        strides[-1] = cute.assume(stride, VECTOR)
    pointer = cute.make_ptr(dtype, address, "gmem", assumed_align=16)
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=tuple(strides)))


def mover_number() -> Any:
    """Return the number of this warp among the movers of the grid."""
    warp = arch.make_warp_uniform(arch.warp_idx())
    return block_number() * MOVERS + warp - 1


def block_number() -> Any:
    """Return the number of this block in the grid, x fastest."""
    x, y, z = arch.block_idx()
    width, height, _ = arch.grid_dim()
    return x + width * (y + height * z)


def num_blocks() -> Any:
    """Return the number of blocks of the grid."""
    x, y, z = arch.grid_dim()
    return x * y * z


@cute.jit
def copy_part(
    source: Any,
    target: Any,
    shape: Any,
    pitch: Any,
    dtype: cute.Constexpr,
    rows: cute.Constexpr,
    columns: cute.Constexpr,
):
    """Copy a part of a matrix, `rows` x `columns`, by one warp, from an address to another.

    `shape` (rows, columns) is what exists of it, and `pitch` the bytes from row to row of both. The
    columns are 64, 128 or 256: each lane keeps to one column, which saves registers.
    """
    vectors = columns // VECTOR
    lines = arch.WARP_SIZE // vectors  # rows that a warp copies at once
    row, column = arch.lane_idx() // vectors, arch.lane_idx() % vectors * VECTOR
    begin = cute.Int64(row) * pitch + column * 2
    source, target = source + begin, target + begin
    if column < shape[1]:
        left = shape[0] - row
        for first in cute.range(0, rows, lines * _UNROLL, unroll=1):
            kept = cute.make_rmem_tensor((VECTOR, _UNROLL), dtype)
            for u in cute.range_constexpr(_UNROLL):
                if first + u * lines < left:
                    cute.autovec_copy(_vector(source + u * lines * pitch, dtype), kept[None, u])
            for u in cute.range_constexpr(_UNROLL):
                if first + u * lines < left:
                    cute.autovec_copy(kept[None, u], _vector(target + u * lines * pitch, dtype))
            source += lines * _UNROLL * pitch
            target += lines * _UNROLL * pitch


def _vector(address: Any, dtype: Any) -> Any:
    pointer = cute.make_ptr(dtype, address, "gmem", assumed_align=16)
    return cute.make_tensor(pointer, cute.make_layout(VECTOR))


def launch_number(w: Any) -> Any:
    """Return the number of this launch among those of the memory."""
    return w.signals.counter(_TURN)


@cute.jit
def take_number(w: Any, turn: Any) -> Any:
    """Return the next number of what the movers of a launch share out, from 0 on, by one warp.

    So those that are resident do all of it: blocks that come later, because other kernels hold
    multiprocessors, keep no peer waiting.
    """
    number = cute.Int32(0)
    if arch.lane_idx() == 0:
        number = w.signals.add_counter(_taken(turn), 1).to(cute.Int32)
    return arch.shuffle_sync(number, 0)


def _taken(turn: Any) -> Any:
    return _TAKEN + (turn & 1).to(cute.Int32)


@cute.jit
def count_launch(w: Any, turn: Any, readers: cute.Constexpr):
    """Count this block as begun, by the first of the movers; the last block counts the launch.

    `readers` warps, this one among them, call this or `has_read` when they have read the number of
    the launch: the next one's is there once all warps of all blocks have. When the last tiles are
    done, counting would take 2 us.
    """
    arch.barrier(_READ, readers * arch.WARP_SIZE)
    if arch.lane_idx() == 0:
        before = w.signals.add_counter(_BEGUN, 1)
        if before == (num_blocks() - 1).to(cute.Uint32):
            w.signals.set_counter(_BEGUN, 0)
            w.signals.set_counter(_taken(turn + 1), 0)
            w.signals.set_counter(_TURN, turn + 1)


def has_read(readers: int) -> None:
    """Say that this warp has read the number of the launch; see `count_launch`."""
    arch.barrier_arrive(_READ, readers * arch.WARP_SIZE)


@cute.jit
def wait_until(time: Any):
    """Wait until `now()` is a time, by one warp."""
    while now() < time:
        arch.nanosleep(64)
    arch.sync_warp()
