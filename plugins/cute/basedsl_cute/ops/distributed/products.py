"""Matrix products of a group: the memory they communicate through, and the choice of a kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import basedsl_cute as cute
from basedsl import DSLCallError, DSLTypeError, with_article
from basedsl_cute.distributed import SymmetricTensor, simulated
from basedsl_cute.ops.distributed.gather_product import gather_product
from basedsl_cute.ops.distributed.launches import Flat, Launch, Launches
from basedsl_cute.ops.distributed.product_pace import PACE, Rounds, push_pace, store_pace
from basedsl_cute.ops.distributed.product_parts import COUNTERS, MOVERS, VECTOR, ProductPlan
from basedsl_cute.ops.distributed.scatter_product import scatter_product
from basedsl_cute.ops.hopper.config import CANDIDATES, Config, fastest_config

_TYPES = (cute.Float16, cute.BFloat16)
_BITS = 16
_SIZE = _BITS // 8  # bytes of an element
_MOVER_REGISTERS = 40  # of the producer's warps: those that move data have four vectors in flight
_HALF_ALIGN = 1024  # bytes
# Waves of the largest tiles up to which smaller ones were as fast or faster before a sum (measured
# between two H200s, bench/results/2026-11-22-distributed.md).
_FEW_WAVES = 8
_FEW_BYTES = 350e6  # of both matrices: tiles of 128 x 128 load larger ones too often
# Cycles until the first of what a peer pushes is there, and the bytes that arrive in a cycle
# (measured between two H200s).
_LATENCY, _LINK = 8750, 170
SLOTS = 1 << 13
"""Flags of each rank in the memory of products."""


class ProductWorkspace:
    """The memory that the products of one group communicate through, on one rank.

    Calls with one workspace are in the same order on all ranks, and on one stream. `blocks` is the
    number of multiprocessors, on all of which a product runs; `pace` a factor of the times that
    transfers take, which are less than they have. Made by `product_workspace` and
    `simulated_product_workspaces`.
    """

    def __init__(
        self,
        memory: SymmetricTensor,
        nbytes: int,
        blocks: int,
        stream: Callable[[], int] = lambda: 0,
        pace: float = PACE,
    ) -> None:
        self.memory, self.pace = memory, pace
        self.half_bytes = nbytes // 2 // _HALF_ALIGN * _HALF_ALIGN
        self.blocks = blocks
        self._launches = Launches(stream)

    def check(self) -> None:
        """Raise PeerTimeoutError if a call that has run waited for a peer beyond its limit."""
        self.memory.check()

    def all_gather_matmul(self, x: Any, weight: Any, y: Any, config: Config | None = None) -> None:
        """Write to `y` the product of all ranks' `x`, one after the other in the order of ranks,
        with the transpose of this rank's `weight`.

        `x` is (rows, k), `weight` (n, k) and `y` (rows of all ranks, n): contiguous arrays of
        Float16 or BFloat16; `k` and `n` are multiples of 8. `config` is that of the Hopper GEMM, by
        default chosen by a model. Raises DSLTypeError for other arrays, DSLCallError for those that
        the memory has no room for.
        """
        self.check()
        self._launches.call(self._all_gather_matmul, (x, weight, y), config)

    def matmul_reduce_scatter(
        self, x: Any, weight: Any, y: Any, config: Config | None = None
    ) -> None:
        """Write to `y` this rank's part, along the rows, of the sum of all ranks' products of `x`
        with the transpose of `weight`.

        `x` is (rows, k), `weight` (n, k) and `y` (rows of one part, n); the rest is that of
        `all_gather_matmul`.
        """
        self.check()
        self._launches.call(self._scatter, (x, weight, y), config, False)

    def matmul_all_reduce(self, x: Any, weight: Any, y: Any, config: Config | None = None) -> None:
        """Write to `y` the sum of all ranks' products of `x` with the transpose of `weight`, the
        same bits on all ranks.

        `x` is (rows, k), `weight` (n, k) and `y` (rows, n), where the rows are as many equal parts
        as there are ranks; the rest is that of `matmul_reduce_scatter`.
        """
        self.check()
        self._launches.call(self._scatter, (x, weight, y), config, True)

    def _all_gather_matmul(self, a: Flat, b: Flat, c: Flat, config: Config | None) -> Launch | None:
        _check_config(config)
        ranks = self.memory.num_ranks
        rows, n, k = _extents(a, b, c, ranks, "rows of all ranks")
        if not rows * n:
            return None
        cfg = config or _chosen(rows, ranks, n, k, self.blocks, True, True)
        lines, columns = _chunk(rows, k, cfg.tile[0], self.blocks * MOVERS * 2)
        self._check_room(ranks * rows * k, COUNTERS + ranks * -(-rows // cfg.tile[0]))
        plan = _plan(a.dtype, cfg, lines, columns)
        chunks = -(-rows // lines) * -(-k // columns)
        rounds = Rounds(cfg, rows, n, k, ranks, self.blocks)
        numbers = rows, n, k, self.half_bytes, push_pace(rounds, chunks, self.pace), self.blocks
        return Launch(gather_product, self.memory, numbers, (plan,))

    def _scatter(
        self, a: Flat, b: Flat, c: Flat, config: Config | None, everywhere: bool
    ) -> Launch | None:
        _check_config(config)
        ranks = self.memory.num_ranks
        rows, rest = divmod(a.rows, ranks)
        if rest:
            raise DSLCallError(f"{a.rows} rows are no {ranks} equal parts")
        every, n, k = _extents(a, b, c, 1, "rows") if everywhere else _parts(a, b, c, ranks)
        if not every * n:
            return None
        cfg = config or _chosen(rows, ranks, n, k, self.blocks, False, everywhere)
        tiles = -(-rows // cfg.tile[0]) * -(-n // cfg.tile[1]) * cfg.warpgroups_per_tile
        twice = 2 if everywhere else 1
        self._check_room(twice * every * n, twice * tiles)
        pace, every = store_pace(Rounds(cfg, rows, n, k, ranks, self.blocks), self.pace)
        plan = _plan(a.dtype, cfg, every=every)
        numbers = rows, n, k, self.half_bytes, pace, self.blocks
        return Launch(scatter_product, self.memory, numbers, (everywhere, plan))

    def _check_room(self, elements: int, flags: int) -> None:
        if elements * _SIZE > self.half_bytes:
            raise DSLCallError(
                f"this product takes {2 * elements * _SIZE} bytes of the workspace, which has "
                f"{2 * self.half_bytes}",
                hint="product_workspace(group, nbytes)",
            )
        if flags > self.memory.slots:
            raise DSLCallError(
                f"this product takes {flags} flags of the workspace, which has {self.memory.slots}",
                hint="a config with larger tiles, or a part of the rows at a time",
            )


def _check_config(config: Any) -> None:
    if config is not None and not isinstance(config, Config):
        raise DSLTypeError(
            f"the config is {with_article(type(config))}, not a Config",
            hint="basedsl_cute.ops.hopper.config.Config(tile=(128, 128, 64), ...), or None",
        )


def _extents(a: Flat, b: Flat, c: Flat, ranks: int, what: str) -> tuple[int, int, int]:
    """The rows and K of A, and the rows of B. Raises DSLTypeError unless C is their product,
    `ranks` times as many rows.
    """
    _check_types(a, b, c)
    if a.row != b.row or c.count != a.rows * ranks * b.rows:
        raise DSLTypeError(
            f"x has {a.rows} x {a.row} elements, weight {b.rows} x {b.row}, and y {c.count}",
            hint=f"x is (rows, k), weight (n, k), y ({what}, n)",
        )
    return a.rows, b.rows, a.row


def _parts(a: Flat, b: Flat, c: Flat, ranks: int) -> tuple[int, int, int]:
    _check_types(a, b, c)
    if a.row != b.row or c.count * ranks != a.rows * b.rows:
        raise DSLTypeError(
            f"x has {a.rows} x {a.row} elements, weight {b.rows} x {b.row}, and y {c.count}",
            hint="x is (rows, k), weight (n, k), y (rows of one part, n)",
        )
    return a.rows, b.rows, a.row


def _check_types(a: Flat, b: Flat, c: Flat) -> None:
    for name, x in (("x", a), ("weight", b), ("y", c)):
        if x.dtype not in _TYPES:
            raise DSLTypeError(
                f"products with communication take three arrays of Float16 or of BFloat16, and "
                f"{name} is of {x.dtype.__name__}"
            )
        if x.dtype is not a.dtype:
            raise DSLTypeError(f"x is of {a.dtype.__name__}, {name} of {x.dtype.__name__}")
        if not a.row:
            raise DSLCallError("a product over no elements (K is 0)", hint="y is zeros")
        if x.address % 16 or x.row % VECTOR:
            raise DSLTypeError(
                f"{name} has rows that are no multiples of {VECTOR} elements, or begin unaligned",
                hint="pad k and n to multiples of 8",
            )


def _chunk(rows: int, k: int, tile_rows: int, wanted: int) -> tuple[int, int]:
    """The rows and columns of a chunk: the largest of which there are as many as `wanted`."""
    columns = 256 if k > 4096 else 128
    lines = tile_rows
    while lines > 16 and -(-rows // lines) * -(-k // columns) < wanted:
        lines //= 2
    return lines, columns


@functools.cache
def _chosen(
    rows: int, ranks: int, n: int, k: int, blocks: int, gathers: bool, moves: bool
) -> Config:
    """The configuration that is fastest by the model of `ops.hopper.config`, for shards of `rows`;
    some warps move data if `moves`.

    With an all-gather, multiprocessors that no tile of this rank's own shard is left for wait at
    the beginning until what they need has arrived. With a sum, the last tiles leave while nothing
    is multiplied: the largest tiles are for many waves.
    """

    def cycles(one: dict[str, Any]) -> tuple[float, Config]:
        found = fastest_config(rows * ranks, n, k, _BITS, blocks, _BITS, (one,))
        m, columns, _ = found[1].tile
        own = -(-rows // m) * -(-n // columns)
        arrival = _LATENCY + (ranks - 1) * rows * k * _SIZE / _LINK
        waiting = max(0.0, 1 - own / blocks) if gathers else 0.0
        return found[0] + waiting * arrival, found[1]

    wide = max(CANDIDATES, key=lambda one: math.prod(one["tile"][:2]))["tile"]
    waves = -(-rows * ranks // wide[0]) * -(-n // wide[1]) / blocks
    nbytes = (rows * ranks + n) * k * _SIZE
    small = not gathers and waves <= _FEW_WAVES and nbytes <= _FEW_BYTES
    every = (
        one | ({"producer_registers": _MOVER_REGISTERS} if moves else {})
        for one in CANDIDATES
        if not small or math.prod(one["tile"][:2]) < math.prod(wide[:2])
    )
    return min((cycles(one) for one in every), key=lambda found: found[0])[1]


@functools.cache
def _plan(
    dtype: Any, cfg: Config, lines: int = 64, columns: int = 128, every: int = 1
) -> ProductPlan:
    """The plan, one object for equal ones: native calls compare static arguments by identity."""
    return ProductPlan(dtype, cfg, lines, columns, every)


def simulated_product_workspaces(
    world: Any, nbytes: int, blocks: int = 2, timeout: float = 30.0, pace: float = 0.0
) -> list[ProductWorkspace]:
    """Make a workspace of products for each simulated rank of `world`."""
    made = simulated(world, nbytes, np.uint8, slots=SLOTS, timeout=timeout)
    return [ProductWorkspace(one, nbytes, blocks, pace=pace) for one in made]
