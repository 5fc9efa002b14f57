"""The configurations of Hopper kernels that may be fastest for a product of 16-bit floats, as a
table for `ops.hopper.model`: tiles of all widths, alone and in clusters that load for each other,
slices of K added up by a cluster or from memory.

Those of few rows have all of these in a tile; they depend on the product. All others are the same
for all products, so that their table is made once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.hardware.targets import MAX_REGISTERS_PER_THREAD, REGISTERS_PER_SM
from basedsl_cute.ops.hopper import parallel_split_k
from basedsl_cute.ops.hopper.config import SHARED_MEMORY, Config, filled_config
from basedsl_cute.ops.hopper.model import COLUMNS, GPCS, columns_of, gpcs_have_parts
from basedsl_cute.ops.hopper.problem import Problem
from basedsl_cute.ops.hopper.split_k_gemm import Config as SplitConfig

__all__ = ["Candidates", "candidates"]

_STEP = 64  # elements of K
FEW = 192  # rows, or columns, which one tile can have
_MOST_WORKSPACE = 2**24  # bytes
_PARTS = (2, 3, 4, 5, 6, 8, 11, 12, 16, 24, 32, 64)
_LEAST_STEPS = 4  # of K of each slice of a cluster
_FEWEST_STAGES = 8  # that are made half as many of twice the step
_NARROW = 32  # columns up to which they are: 0 to 2.5 % faster, 1 % on average
_MOST_BLOCKS = 16  # for each multiprocessor
_BLOCKS_OF_SUMS = 8  # of the kernel that adds up parts, which a multiprocessor has at once
_SHORT_K = 3072  # up to which warps may store C sooner than TMA, where tiles are one round

# Rows of a tile, warpgroups that multiply, whether in turn, and the most columns whose sums stay in
# registers, also with an epilogue.
_SHAPES = (
    (64, 2, True, 256),
    (64, 1, False, 256),
    (128, 2, True, 128),
    (128, 2, False, 256),
    (192, 3, False, 192),
    (256, 2, False, 176),
)
_PAIRS = ((1, 1), (2, 1), (1, 2))
_FOURS = ((4, 1), (1, 4))
# Tiles of slices of K into a workspace of 32-bit sums.
_WIDTHS_OF_PARTS = (
    (64, 2, True, (64, 96, 128, 192, 256)),
    (64, 1, False, (96, 128, 192)),
    (128, 2, True, (64, 96, 128)),
    (128, 2, False, (80, 96, 112, 128, 144, 160, 192, 256)),
    (192, 3, False, (96, 128)),
    (256, 2, False, (96, 128)),
)
_TILES_OF_SUMS = ((64, 48), (64, 64), (64, 96), (64, 128), (128, 64), (128, 128))


class Candidates(NamedTuple):
    """A table of configurations, and what each row is of."""

    table: dict[str, Any]
    sources: list[tuple[Any, int]]  # configurations of consecutive rows, and their parts of K
    starts: list[int]  # the first row of each source

    def at(self, row: int, problem: Problem) -> Any:
        """The configuration of a row, as it is launched for the product."""
        source = int(np.searchsorted(self.starts, row, side="right")) - 1
        configs, parts = self.sources[source]
        cfg = configs[row - self.starts[source]]
        if isinstance(cfg, Config):
            cfg = _turned(cfg, problem, parts)
        if parts == 1:
            return cfg
        return parallel_split_k.Config(parts, cfg, threads_of_a_sum(problem, parts))


def candidates(problem: Problem) -> Candidates:
    """The candidates for a product; those that add up parts in memory see it `row_major`."""
    m, n, k = problem.m, problem.n, problem.k
    sources: list[tuple[Any, int]] = []
    tables = []

    def take(configs: Any, table: dict[str, Any], parts: int = 1) -> None:
        sources.append((configs, parts))
        tables.append(table | {"parts": np.full(len(configs), parts)})

    if problem.shortest <= FEW:
        few = tuple(dict.fromkeys(_few_rows(problem)))
        take(few, columns_of(few))
    if problem.shortest > 64:
        configs, table = _many_rows(k <= _SHORT_K)
        fits = (table["rows"] < m + 64) & (table["columns"] < n + 64)
        take(*_only(configs, table, fits))
        if m % 128:  # rows that tiles of them leave empty
            configs, table = _many_columns()
            fits = (table["rows"] < n + 64) & (table["columns"] < m + 64)
            take(*_only(configs, table, fits))
    turned = problem.row_major()
    for parts in _PARTS:
        if not problem.has_parts(parts) or 4 * parts * m * n > _MOST_WORKSPACE:
            continue
        if parts * problem.tiles(256, 256) > problem.processors:
            continue  # more rounds than one of the largest tiles
        configs, table = _of_parts()
        fits = (table["rows"] < turned.m + 64) & (table["columns"] < turned.n + 64)
        take(*_only(configs, table, fits), parts)
    starts = np.cumsum([0, *(len(configs) for configs, _ in sources)]).tolist()[:-1]
    columns = {name: np.concatenate([table[name] for table in tables]) for name in COLUMNS}
    return Candidates(columns, sources, starts)


def threads_of_a_sum(problem: Problem, parts: int) -> int:
    """The threads that add up a vector together: so many that all of them run at once."""
    sharing, most = 1, max(n for n in (1, 2, 4, 8) if n <= parts)
    blocks = problem.m * problem.n // (parallel_split_k.VECTOR * parallel_split_k.THREADS)
    while sharing < min(8, parts // 2) and 2 * sharing * blocks <= problem.processors:
        sharing *= 2
    # As long as each adds several parts, as many as run at once.
    while (
        max(8, 4 * sharing) <= parts
        and 2 * sharing * blocks <= _BLOCKS_OF_SUMS * problem.processors
    ):
        sharing *= 2
    return min(most, max(sharing, 2) if blocks <= 2 * problem.processors else sharing)


def _only(configs: Any, table: dict[str, Any], fits: Any) -> tuple[Any, dict[str, Any]]:
    chosen = np.flatnonzero(fits)
    return [configs[i] for i in chosen], {name: x[chosen] for name, x in table.items()}


def _turned(cfg: Config, problem: Problem, parts: int) -> Config:
    """The configuration with the raster and the loads that were fastest for its number of tiles.

    Where each multiprocessor has one tile, tiles that follow each other lie across their clusters:
    the GPU deals clusters to its GPCs in turn, and those of a GPC read what they share at once
    (pairs 1 to 3 % faster on average than in bands along them, up to 27 %). There tiles of one or
    two consumers are stored at once, as no next one follows (1 %, up to 3). Up to two rounds, loads
    bring 128 bytes into L2 instead of 256 (0 to 2.5 %).

    Of long slices of K, each GPC gets whole ones where it can (1 to 4 %, in long rows of calls 4).
    """
    rows, columns, _ = cfg.tile
    across, along = cfg.cluster
    tiles = problem.tiles(columns, rows) if cfg.swap else problem.tiles(rows, columns)
    is_round = tiles * parts <= problem.processors
    if across != along and is_round and parts == 1:
        cfg = replace(cfg, along_m=across < along, swizzle=1)
    elif across != along and (is_round or cfg.pingpong or rows < 128 or columns < 160):
        cfg = replace(cfg, along_m=across > along)
    if is_round and parts == 1 and cfg.consumers < 3:
        cfg = replace(cfg, deferred=False)
    if tiles <= 2 * problem.processors and problem.shortest > FEW:
        cfg = replace(cfg, promotion=128)
    if parts > 1:
        table, turned = columns_of([parallel_split_k.Config(parts, cfg)]), problem.row_major()
        if gpcs_have_parts(table, turned.m, turned.n, turned.k)[0]:
            cfg = replace(cfg, apart=GPCS)
    if (rows, columns) == (192, 96) and is_round and parts == 1 and not cfg.by_warps:
        cfg = replace(cfg, slots=3, deferred=False, whole=True)
    return cfg


def _split(
    rows: int,
    columns: int,
    split: int = 1,
    blocks: int = 1,
    swap: bool = False,
    sharing: int = 1,
    promotion: int = 256,
    most: int = 12,
    longer_steps: bool = False,
) -> Iterator[SplitConfig]:
    """The configuration of `split_k_gemm` with as many stages as fit, if there is one; with
    `longer_steps`, where they are many, half as many stages of twice the step.
    """
    stages, step = min(most, (SHARED_MEMORY // blocks - 3072) // ((rows + columns) * 128)), _STEP
    warpgroups = rows // 64
    sums = rows * columns // (128 * warpgroups)  # of a thread
    registers = min(MAX_REGISTERS_PER_THREAD, -(-(sums + 50) // 8) * 8)
    if blocks * (128 * warpgroups + 32) * registers > REGISTERS_PER_SM or sums > 136:
        return
    if stages < 3 or 4 * rows * (columns + 8) > SHARED_MEMORY // blocks - 2048:
        return
    if longer_steps and stages >= _FEWEST_STAGES:
        stages, step = stages // 2, 2 * step
    yield SplitConfig(
        (rows, columns, step),
        stages,
        warpgroups,
        split,
        swap,
        sharing=sharing,
        blocks_per_sm=blocks,
        promotion=promotion,
    )


def _few_rows(problem: Problem) -> Iterator[Any]:
    short, long = problem.shortest, max(problem.m, problem.n)
    every = [*_rows_of_the_longer(problem, short, long), *_rows_of_the_shorter(problem)]
    if problem.batches > 1 and short <= 64:
        every += _persistent_rows_of_the_longer(problem, short)
    for cfg in every:
        yield cfg
        yield replace(cfg, promotion=128)


def _rows_of_the_longer(problem: Problem, short: int, long: int) -> Iterator[Any]:
    """Tiles of 64 or 128 rows of the longer operand, and all of the shorter one."""
    columns, steps = -(-short // 8) * 8, -(-problem.k // _STEP)
    swap, processors = problem.m < problem.n, problem.processors
    longer_steps = problem.balances and columns <= _NARROW
    split_of = functools.partial(_split, swap=swap, longer_steps=longer_steps)
    for rows in (64, 128):
        of_a_batch = -(-long // rows)
        tiles = of_a_batch * problem.batches
        for split in (1, 2, 3, 4, 6, 8):
            if split > 1 and steps < _LEAST_STEPS * split:
                continue
            for blocks in (1, 2, 3, 4):
                if tiles * split > _MOST_BLOCKS * processors:
                    continue
                if blocks > 1 and tiles * split * 2 < blocks * processors:
                    continue
                yield from split_of(rows, columns, split, blocks)
                for sharing in (2, 4, 8) if split == 1 else ():
                    if of_a_batch % sharing == 0 and tiles >= sharing * 8:
                        yield from split_of(rows, columns, 1, blocks, sharing=sharing, most=16)
        if columns <= 16:  # fewer stages fetch what blocks of two rounds need more evenly
            for cfg in _split(rows, columns, 1, 2, swap):
                yield replace(cfg, stages=5)
                yield replace(cfg, stages=6)


def _persistent_rows_of_the_longer(problem: Problem, short: int) -> Iterator[Any]:
    """Tiles of rows of the longer operand, and all of the shorter one, by the persistent kernel: it
    loads a tile of one batch while it stores that of another.
    """
    columns, swap = -(-short // 16) * 16, problem.m < problem.n
    for rows, consumers, turns, _ in _SHAPES:
        for cluster in ((1, 1), (2, 1)):
            yield replace(filled_config(rows, columns, 16, consumers, turns, cluster), swap=swap)


def _rows_of_the_shorter(problem: Problem) -> Iterator[Any]:
    """Tiles with all of the shorter mode as rows, and as much of the longer one as makes so many
    tiles as multiprocessors, or twice or three times as many.
    """
    short, long = problem.shortest, max(problem.m, problem.n)
    rows, steps = -(-short // 64) * 64, -(-problem.k // _STEP)
    swap, processors = problem.m > problem.n, problem.processors / problem.batches
    most = 256 if rows < 192 else 176
    widths = {(c, split) for c in (48, 64, 96, 128) for split in (1, 2)}
    for rounds in (1, 2, 3):
        for split, found in ((1, 1.0), (2, 1.0), (4, 0.9)):
            tiles = max(1, int(found * processors * rounds))
            widths.add((-(-long * split // (8 * tiles)) * 8, split))
    for columns, split in sorted(widths):
        if 16 <= columns <= most and (split == 1 or steps >= _LEAST_STEPS * split):
            for blocks in (1, 2) if columns <= 128 else (1,):
                if -(-long // columns) * split * 2 >= blocks * processors:
                    yield from _split(rows, columns, split, blocks, swap)
    if swap:
        return
    most = 256 if rows < 192 else 160
    for rounds in (1, 2, 3):
        for cluster, found in ((1, 1.0), (2, 1.0), (4, 0.91), (8, 0.85)):
            tiles = max(1, int(found * processors * rounds))
            columns = -(-long // (16 * tiles)) * 16
            if 32 <= columns <= most:
                yield filled_config(rows, columns, 16, rows // 64, cluster=(1, cluster))
    for columns in (96, 128, 192, 256):
        for cluster in (1, 2):
            if columns <= most:
                yield filled_config(rows, columns, 16, rows // 64, cluster=(1, cluster))
            if columns <= (256 if rows == 64 else 128) and rows < 192:
                yield filled_config(rows, columns, 16, 2, True, (1, cluster))


@functools.cache
def _many_rows(by_warps: bool) -> tuple[list[Any], dict[str, Any]]:
    """Tiles of which there are several along both modes; `by_warps` adds those that warps store."""
    found: list[Any] = []
    for rows, consumers, turns, widest in _SHAPES:
        for columns in range(48, widest + 1, 16):
            for cluster in (*_PAIRS, *(_FOURS if rows <= 128 else ())):
                found.append(filled_config(rows, columns, 16, consumers, turns, cluster))
            if columns % 32 == 0 and columns >= 64 and rows <= 128:
                found.append(filled_config(rows, columns, 16, consumers, turns, (2, 2)))
    found = [cfg for cfg in found if cfg.stages >= 3]
    if by_warps:
        found += [replace(cfg, by_warps=True, deferred=False) for cfg in found]
    for rows, columns in (*_TILES_OF_SUMS, (128, 96)):
        for split in (1, 2, 4):
            for swap in (False, True):
                found += _split(rows, columns, split, 1, swap)
        if rows == 64:
            found += _split(rows, columns, 1, 2)
        for sharing in (2, 4):
            found += _split(rows, columns, sharing=sharing)
    return found, columns_of(found)


@functools.cache
def _many_columns() -> tuple[list[Any], dict[str, Any]]:
    """Tiles of C^T = B A^T, which have any multiple of 16 rows of C."""
    found = [
        replace(filled_config(rows, columns, 16, consumers, turns, cluster), swap=True)
        for rows, consumers, turns, widest in _SHAPES
        for columns in range(64, widest + 1, 16)
        for cluster in (*_PAIRS, *(_FOURS if rows <= 128 else ()))
    ]
    found = [cfg for cfg in found if cfg.stages >= 3]
    return found, columns_of(found)


@functools.cache
def _of_parts() -> tuple[list[Any], dict[str, Any]]:
    """Tiles of slices of K."""
    found: list[Any] = list(_persistent_parts())
    for rows, columns in _TILES_OF_SUMS:
        for split, sharing in ((1, 1), (1, 2), (2, 1)):
            found += _split(rows, columns, split, sharing=sharing, promotion=128)
    return found, columns_of(found)


def _persistent_parts() -> Iterable[Config]:
    for rows, consumers, turns, widths in _WIDTHS_OF_PARTS:
        for columns in widths:
            slots = 1 if rows >= 128 and columns >= 192 else 2
            # Pieces of 32 columns of 32-bit sums, or of the power of two that divides them.
            piece = slots * consumers * 64 * 4 * min(32, columns & -columns)
            stages = (SHARED_MEMORY - 2048 - piece) // ((rows + columns) * 128)
            for cluster in _PAIRS:
                yield Config(
                    (rows, columns, _STEP),
                    min(10, stages),
                    consumers,
                    turns,
                    cluster,
                    along_m=turns,
                    slots=slots,
                    promotion=128,
                )
