"""The choice of a Hopper kernel and its configuration for a product: `ops.hopper.gemm`,
`split_k_gemm`, or one of these for slices of K that are reduced afterwards (`parallel_split_k`).

A model estimates the time of each on an H200 in microseconds: the longest of the loads from device
memory, the loads of all blocks from L2, and the rounds of tiles on each multiprocessor. Its numbers
were fitted to 650 measurements (bench/results).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

from basedsl_cute.ops.hopper import config, parallel_split_k
from basedsl_cute.ops.hopper.config import SHARED_MEMORY
from basedsl_cute.ops.hopper.split_k_gemm import Config

__all__ = ["CANDIDATES", "Problem", "choose_hopper_kernel", "ranked_hopper_kernels"]

# The configurations of `split_k_gemm` to compare. Where a multiprocessor could have several blocks
# of a small grid, some get two and others none, so that more stages of one block are better there.
CANDIDATES: tuple[dict[str, Any], ...] = (
    {"tile": (64, 8), "stages": 12},
    {"tile": (64, 16), "stages": 12},
    {"tile": (64, 16), "stages": 7, "blocks_per_sm": 3},
    {"tile": (64, 32), "stages": 12},
    {"tile": (64, 32), "stages": 6, "blocks_per_sm": 3},
    {"tile": (64, 48), "stages": 12},
    {"tile": (64, 64), "stages": 12},
    {"tile": (64, 64), "stages": 6, "blocks_per_sm": 2},
    {"tile": (64, 96), "stages": 10},
    {"tile": (64, 128), "stages": 9},
    {"tile": (128, 16), "stages": 4, "blocks_per_sm": 3, "consumers": 2},
    {"tile": (128, 64), "stages": 4, "blocks_per_sm": 2, "consumers": 2},
    {"tile": (128, 96), "stages": 3, "blocks_per_sm": 2, "consumers": 2},
    {"tile": (128, 128), "stages": 3, "blocks_per_sm": 2, "consumers": 2},
)
_MIN_STEPS = 4  # of K for each block
# Balanced tiles have all of the shorter mode: the most rows, and the most columns for each number
# of warpgroups, which keep the sums in registers.
_MOST_ROWS = 192
_MOST_COLUMNS = {1: 256, 2: 256, 3: 176}
_LEAST_TO_BALANCE = 2.0  # microseconds of loads from device memory
_FEW = 16  # rows, for which they were slower
_LEAST_STAGES = 8  # of blocks that share the loads of the shorter mode
_LOADING_TOGETHER = 0.6  # as `_LOADING`, of blocks that share loads
_LONG_K = 2048 * 16  # bits of K from which they do
_SHORT_K = 1024 * 16  # up to which C is stored by warps, where tiles are one round
_VERY_LONG_K = 16384 * 16  # from which it makes no difference which operand pairs share
_WIDEST_OF_256 = 176  # columns of a tile of 256 rows: with 192 some epilogues spill
_MANY_ROUNDS = 40.0  # microseconds of loads of all blocks of a cluster, in rounds
_ROOM = (4.0, 10.0)  # microseconds of loads for which room for the next kernel is worth stages
_MOST_ROUNDS = 2  # of tiles over the multiprocessors, where blocks of a cluster share K

_CLOCK = 1750.0  # cycles in a microsecond
_MEMORY = 3.85e6  # bytes in a microsecond from device memory
_LOADING = 0.8  # the fraction of the multiprocessors that saturates device memory
_RELOADED = 0.1  # the fraction loaded again for each further tile along the shorter mode
_L2 = 10e6  # bytes in a microsecond from L2, to all multiprocessors
_L2_TO_SM = 53.0  # bytes in a cycle from L2, to each multiprocessor
_KERNEL = 0.2  # microseconds of any kernel
_BLOCK = 0.0104  # microseconds more for each resident block
_CLUSTER_BLOCK = 0.43  # microseconds more for each block of a cluster: they wait for each other
_EPILOGUE = 0.22  # cycles for an element of a tile, and as many again for the reduction
_PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # slices of K for `parallel_split_k`
_MIN_STEPS_OF_PART = 8
_MAX_WORKSPACE = 2**24  # bytes
_WORTH = 0.93  # the fraction of the usual choice's time that another has to reach
_REDUCTION = 2.0  # microseconds of the kernel that reduces partial sums
_REDUCED = 3.5e6  # bytes that it reads or writes in a microsecond
_BLOCKS_OF_SUMS = 8  # of that kernel, which a multiprocessor has at once
_NOT_WORTH = 2.0  # times the shortest time by the model: what takes longer is not measured
_HOPPER = (1.0, 1.2)  # offset (microseconds) and factor on the model of `ops.hopper.config`
# Several blocks on a multiprocessor that are fewer than multiprocessors: some get two and others
# none (measured: 128 x 14336 x 4096 in tiles of 128 x 128).
_FEWER_THAN_PLACES = 1.3
# Medians of measured by modelled times, of 760 products in four runs (bench/results): of several
# blocks on a multiprocessor by their tile, and of pairs of tiles of 64 rows and more than 96
# columns, for a K above 1,024.
_SHARED = {(64, 32): 1.1, (64, 64): 1.12, (128, 16): 0.95, (128, 96): 1.1}
_PAIRS_OF_64 = 1.2
_TILES_OF_144 = 0.97  # of 128 rows, where K is contiguous
# Pairs of tiles along M, where N of the longer operand is contiguous: pieces of 64 columns are
# loaded as they lie, others in smaller boxes (measured: 512 x 1120 x 2560, 512 x 1536 x 3072).
_PAIRS_ALONG_N = {(128, 64): 0.8, (64, 96): 1.13}
_NARROW_PAIRS = 1.3  # of tiles of up to 96 columns in pairs along N, for a K below 4,096


@dataclass(frozen=True)
class Problem:
    """The facts of a product on which the choice of its kernel depends."""

    m: int
    n: int
    k: int
    batches: int
    bits: int  # of an element of A and B
    bits_of_c: int
    processors: int  # multiprocessors of the GPU
    stores: bool  # TMA can write C
    is_column_major: bool = False  # C is
    balances: bool = True  # K is contiguous in the longer operand: tiles of any width load as fast
    shorter_balances: bool = True  # and in the shorter one

    @property
    def k_bits(self) -> int:
        """Bits of a row of A."""
        return self.k * self.bits

    @property
    def memory_time(self) -> float:
        """Microseconds to move all operands and C between device memory and the chip once."""
        operands = (self.m + self.n) * self.k * self.bits
        return self.batches * (operands + self.m * self.n * self.bits_of_c) / 8 / _MEMORY

    def tiles(self, rows: int, columns: int) -> int:
        """The number of tiles of C."""
        return -(-self.m // rows) * -(-self.n // columns) * self.batches

    def row_major(self) -> Problem:
        """The product whose result has contiguous rows: if C is column-major, C^T = B A^T."""
        if not self.is_column_major:
            return self
        return replace(self, m=self.n, n=self.m, is_column_major=False)

    def in_parts(self, parts: int) -> Problem:
        """The slices of K as batches, into partial sums of 32 bits that fill whole tiles."""
        rows = -(-self.m // 128) * 128
        return replace(
            self,
            m=rows,
            k=self.k // parts,
            batches=parts,
            bits_of_c=32,
            stores=True,
            balances=False,
        )

    def reduction_time(self, parts: int) -> float:
        """Microseconds of the kernel that reduces the partial sums of the slices of K."""
        return _REDUCTION + self.m * self.n * (4 * parts + self.bits_of_c / 8) / _REDUCED


def choose_hopper_kernel(problem: Problem) -> tuple[str, Any]:
    """The fastest kernel by the model, as its name in `ops.gemm.matmul`, and its configuration."""
    found = _one_kernel(problem)
    best = _WORTH * found[0]
    if problem.batches > 1 or best < _REDUCTION + problem.memory_time:
        return found[1:]
    problem = problem.row_major()  # as `parallel_split_k` computes it
    for parts in _PARTS:
        each, rest = divmod(problem.k, parts)
        bits = each * problem.bits
        if rest or bits % 1024 or bits // 1024 < _MIN_STEPS_OF_PART:
            continue
        if 4 * parts * problem.m * problem.n > _MAX_WORKSPACE:
            break
        time, _, cfg = _one_kernel(problem.in_parts(parts))
        time += problem.reduction_time(parts)
        if time < best:
            made = parallel_split_k.Config(parts, cfg, _sharing(problem, parts))
            best, found = time, (time, "hopper parts", made)
    if isinstance(found[2], parallel_split_k.Config):
        return found[1], _parts_that_share(found[2], problem)
    wide = _parts_of_wide_tiles(problem) if found[1] == "hopper split" else None
    return found[1:] if wide is None else ("hopper parts", wide)


def _parts_of_wide_tiles(problem: Problem) -> parallel_split_k.Config | None:
    """The configuration for a C of two tiles of 64 rows, with a quarter of K for each tile of 128
    columns, of which pairs share B; None where these are not one round.

    Slices of a cluster with tiles of 64 columns load a third more (128 x 2048 x 8192: 16.3 us of
    14.0).
    """
    tile = (64, 128, 1024 // problem.bits)
    tiles = problem.tiles(*tile[:2]) * 4
    if not 64 < problem.m <= 128 or problem.k_bits % 4096 or problem.k_bits // 4 < _LONG_K:
        return None
    if not problem.processors * 9 // 10 <= tiles <= problem.processors:
        return None
    return parallel_split_k.Config(4, config.Config(tile, 8, 1, cluster=(2, 1), along_m=False), 4)


def _parts_that_share(cfg: parallel_split_k.Config, problem: Problem) -> parallel_split_k.Config:
    """The configuration for a C of two tiles of 64 rows, with a part of K for each pair of blocks,
    which share B.
    """
    m, n, k_bits, bits = problem.m, problem.n, problem.k_bits, problem.bits
    parts = problem.processors // 2
    parts = 1 << parts.bit_length() - 1
    if not (64 < m <= 128 and 32 < n <= 128) or k_bits % (1024 * parts):
        return cfg
    if k_bits // (1024 * parts) < _MIN_STEPS_OF_PART:
        return cfg
    columns = -(-n // 16) * 16
    stages = min(9, (SHARED_MEMORY - 2048) // ((64 + columns) * 128))
    inner = Config((64, columns, 1024 // bits), stages, sharing=2)
    return parallel_split_k.Config(parts, inner, 8)


def ranked_hopper_kernels(problem: Problem, most: int = 8) -> list[Any]:
    """The configurations to measure: what `choose_hopper_kernel` finds, and of each of the three
    kernels the `most` that are fastest by the model, of many more than it compares.
    """
    chosen = choose_hopper_kernel(problem)[1]
    usual = sum(_candidates(problem.bits), ())
    single = [
        (time, cfg)
        for time, cfg in (_timed_hopper(problem) if problem.stores else ())
        if problem.bits_of_c <= 16 or cfg in usual
    ]
    split = _timed_split(problem)
    parts: list[tuple[float, Any]] = []
    if problem.batches == 1:
        problem = problem.row_major()
        for count in (*_PARTS, 64, 128):
            each, rest = divmod(problem.k, count)
            bits = each * problem.bits
            size = 4 * count * problem.m * problem.n
            if rest or bits % 1024 or bits < 4 * 1024 or size > 2 * _MAX_WORKSPACE:
                continue
            inner = problem.in_parts(count)
            reduced = problem.reduction_time(count)
            best = [f for f in _timed_hopper(inner) if f[1] in usual][:2]
            best += _timed_split(inner)[:2]
            parts += [(time + reduced, parallel_split_k.Config(count, cfg)) for time, cfg in best]
    found = [sorted(kind, key=lambda f: f[0])[:most] for kind in (single, split, parts)]
    ranked = sorted((f for kind in found for f in kind), key=lambda f: f[0])
    worth = [cfg for time, cfg in ranked if time < _NOT_WORTH * ranked[0][0]]
    return list(dict.fromkeys((chosen, *worth)))


@functools.cache
def _others(bits: int) -> tuple[Any, ...]:
    """Further configurations, without those of 64 rows that were slower than modelled: narrow ones,
    and pairs that share A.
    """
    return tuple(
        cfg
        for cfg in config.every_config(bits)
        if cfg.tile[0] > 64 or (cfg.tile[1] >= 96 and cfg.cluster != (1, 2))
    )


@functools.cache
def _candidates(bits: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The candidates of `ops.hopper.config` for operands of `bits` bits, and the extra ones."""
    usual, extra = (
        tuple(config.Config(**c | {"tile": (*c["tile"], 1024 // bits)}) for c in every)
        for every in (config.CANDIDATES, config.EXTRA_CANDIDATES)
    )
    return usual, extra


def _timed_hopper(problem: Problem) -> list[tuple[float, Any]]:
    """Microseconds by the model for each configuration of `ops.hopper.gemm`, least first."""
    once, bits = problem.memory_time, problem.bits
    every = (
        (_modelled_cycles(cfg, problem), cfg)
        for cfg in {*config.every_config(bits), *sum(_candidates(bits), ())}
    )
    timed = ((_HOPPER[0] + _HOPPER[1] * max(cycles / _CLOCK, once), cfg) for cycles, cfg in every)
    return sorted(timed, key=lambda found: (found[0], str(found[1])))


def _modelled_cycles(cfg: Any, problem: Problem) -> float:
    m, n, k = problem.m * problem.batches, problem.n, problem.k
    return config.modelled_cycles(cfg, m, n, k, problem.bits, problem.processors, problem.bits_of_c)


def _timed_split(problem: Problem) -> list[tuple[float, Any]]:
    """Microseconds by the model for each configuration of `split_k_gemm`, least first."""
    bits, is_flat = problem.bits, problem.m < problem.n
    every = [
        *_configurations(bits, is_flat),
        *sharing_configurations(problem),
        *(
            Config(
                (rows, columns, 1024 // bits), 6 if rows == 64 else 5, rows // 64, split, is_flat
            )
            for rows, columns in ((64, 96), (64, 128), (128, 64), (128, 96), (128, 128))
            for split in (1, 2, 4, 8)
        ),
    ]
    timed = ((_estimated_time(c, problem), c) for c in every)
    return sorted(timed, key=lambda found: found[0])


def _sharing(problem: Problem, parts: int) -> int:
    """The threads that reduce a vector together: so many that all of them run at once."""
    sharing = 1
    blocks = problem.m * problem.n // (parallel_split_k.VECTOR * parallel_split_k.THREADS)
    while sharing < min(8, parts // 2) and 2 * sharing * blocks <= problem.processors:
        sharing *= 2
    # As long as each adds several parts, as many as run at once.
    while 8 * sharing <= parts and 2 * sharing * blocks <= _BLOCKS_OF_SUMS * problem.processors:
        sharing *= 2
    return max(sharing, 2) if blocks <= 2 * problem.processors else sharing


def _one_kernel(problem: Problem) -> tuple[float, str, Any]:
    """The time (microseconds), name and configuration of the fastest single kernel."""
    shorter, is_one = min(problem.m, problem.n), problem.batches == 1
    every = (
        (_estimated_time(c, problem), c)
        for c in _configurations(problem.bits, problem.m < problem.n)
        if not problem.stores or _is_candidate(c, shorter)
    )
    time, cfg = min(every, key=lambda found: found[0])
    is_long = problem.memory_time > _LEAST_TO_BALANCE
    # Few rows leave half of a balanced tile empty, which 64 rows of the longer mode fill.
    tiles = -(-max(problem.m, problem.n) // 64)
    is_filled = shorter <= 32 and problem.processors * 2 // 3 < tiles <= problem.processors
    is_filled = is_filled and problem.memory_time < _MANY_ROUNDS
    if problem.balances and is_one and is_long and shorter > _FEW and not is_filled:
        for other in balanced_configurations(problem):
            its = _estimated_time(other, problem)
            if its < time:
                time, cfg = its, other
    for other in sharing_configurations(problem) if is_one else ():
        its = _estimated_time(other, problem)
        if its <= time:
            time, cfg = its, other
    if problem.stores:
        its, hopper = _fastest_hopper(problem)
        if its <= time:
            return its, "hopper", hopper
    return time, "hopper split", _with_room(cfg, problem.memory_time)


def _fastest_hopper(problem: Problem) -> tuple[float, Any]:
    """The time (microseconds) and configuration of the fastest persistent kernel: one of the usual
    ones, unless one of the others is worth being compiled.
    """
    once, bits, processors = problem.memory_time, problem.bits, problem.processors

    def timed(cfg: Any) -> float:
        cycles = _modelled_cycles(cfg, problem)
        rows, columns, _ = cfg.tile
        loading = max(1.0, _LOADING * processors / min(problem.tiles(rows, columns), processors))
        factor = 1.0
        if (rows, columns) == (128, 144) and problem.balances:
            factor = _TILES_OF_144
        if rows == 64 and columns > 96 and cfg.cluster != (1, 1) and problem.k_bits > 1024 * 16:
            if columns > 128 or cfg.cluster != _longer_pairs(cfg, problem):
                factor = _PAIRS_OF_64
        if rows > 64 and columns <= 96 and cfg.cluster == (1, 2) and problem.k_bits / 16 < 4096:
            factor = _NARROW_PAIRS
        if not problem.balances and cfg.cluster == (2, 1) and problem.k_bits > 1024 * 16:
            if (rows, columns) != (64, 96) or _for_one_round(cfg, problem) == cfg:
                factor *= _PAIRS_ALONG_N.get((rows, columns), 1.0)
        bytes_factor = _HOPPER[1]
        # Loads of a short K go on while the tile before is stored.
        if problem.k_bits <= _LONG_K and 64 < min(problem.m, problem.n) <= _MOST_ROWS:
            if problem.batches == 1 and problem.tiles(rows, columns) > processors:
                bytes_factor = 1.0
        took = max(_HOPPER[1] * cycles / _CLOCK, bytes_factor * once * loading)
        return factor * (_HOPPER[0] + took)

    best, found = math.inf, None
    every = (*_candidates(bits), _others(bits))
    # Wider ones would not stay in registers.
    for kind in every if problem.bits_of_c < 32 else every[:1]:
        time, cfg = min(((timed(cfg), cfg) for cfg in kind), key=lambda found: found[0])
        if time < _WORTH * best:
            best, found = time, cfg
    return best, _for_one_round(found, problem)


def _longer_pairs(cfg: Any, problem: Problem) -> tuple[int, int] | None:
    """The cluster of two blocks that share loads of the longer operand, which is most of what comes
    from memory; None for more than one round of tiles, for those that do not make pairs, for a very
    long K, and where no operand is more than twice as long.
    """
    rows, columns, _ = cfg.tile
    m, n = problem.m, problem.n
    if problem.batches > 1 or problem.tiles(rows, columns) > problem.processors:
        return None
    if max(m, n) <= 2 * min(m, n) or problem.k_bits > _VERY_LONG_K:
        return None
    if m < n:
        return (2, 1) if -(-m // rows) % 2 == 0 else None
    loads_whole_rows = columns % 64 == 0 or problem.shorter_balances
    return (1, 2) if -(-n // columns) % 2 == 0 and rows > 64 and loads_whole_rows else None


def _for_one_round(cfg: Any, problem: Problem) -> Any:
    """The configuration as it is faster where each multiprocessor has one tile at most: its blocks
    share more loads, or C is stored sooner.
    """
    rows, columns, _ = cfg.tile
    m, processors, tiles = problem.m, problem.processors, problem.tiles(rows, columns)
    if cfg.cluster in ((2, 1), (1, 2)):
        cfg = replace(cfg, cluster=_longer_pairs(cfg, problem) or cfg.cluster)
    in_fours = processors * 10 // 11  # multiprocessors that clusters of four blocks find
    if (rows, columns) in ((64, 96), (128, 64)) and cfg.pingpong and cfg.cluster != (1, 1):
        if m % 256 == 0 and problem.batches == 1 and problem.k_bits >= _LONG_K:
            if processors * 2 // 3 < problem.tiles(64, 128) <= in_fours:
                tile = (64, 128, 1024 // problem.bits)
                return config.Config(tile, 8, 1, cluster=(4, 1), along_m=False, by_warps=True)
    if (rows, columns) == (64, 96) and cfg.cluster == (2, 1) and m % (4 * rows) == 0:
        if tiles <= in_fours:
            return replace(cfg, cluster=(4, 1))
    if (rows, columns) == (64, 128) and cfg.pingpong and tiles <= processors:
        if problem.batches == 1 and problem.k_bits <= _SHORT_K and problem.bits_of_c == 16:
            return _in_eights(problem) or replace(cfg, by_warps=True)
    if (rows, columns) == (192, 96) and tiles <= processors and problem.bits_of_c == 16:
        return replace(cfg, slots=3, deferred=False, whole=True)
    if rows == 128 and cfg.defers(16) and problem.k_bits >= _LONG_K and problem.bits_of_c <= 16:
        if m % 256 == 0 and processors < tiles <= 2 * processors:
            return _one_round(problem) or cfg
    return cfg


def _in_eights(problem: Problem) -> Any:
    """The configuration of tiles of 128 x 72, of which clusters of eight blocks share loads; None
    where these do not fill the multiprocessors that such clusters find.
    """
    across, found = -(-problem.m // 128), problem.processors * 6 // 7
    along = found // across // 2 * 2
    if problem.bits != 16 or across % 4 or not along or -(-problem.n // along // 8) * 8 != 72:
        return None
    tile = (128, 72, 1024 // problem.bits)
    return config.Config(tile, 8, 2, cluster=(4, 2), along_m=False, slots=9, by_warps=True)


def _one_round(problem: Problem) -> Any:
    """The configuration of tiles of 256 rows, so wide that each multiprocessor has one at most;
    None if these do not stay in registers, or tiles of 128 rows do as well.
    """
    across = problem.m // 256 * problem.batches
    columns = -(-problem.n // (problem.processors // across) // 16) * 16
    if not 128 < columns <= _WIDEST_OF_256:
        return None
    cluster = (2, 1) if across % 2 == 0 else (1, 2)
    return config.filled_config(256, columns, problem.bits, 2, cluster=cluster)


@functools.cache
def _configurations(bits: int, swap: bool) -> list[Config]:
    return [
        Config(**c | {"tile": (*c["tile"], 1024 // bits), "split": split, "swap": swap})
        for c in CANDIDATES
        for split in _splits(*c["tile"])
    ]


def balanced_configurations(problem: Problem) -> list[Config]:
    """The configurations of `split_k_gemm` for few rows or columns, in which each multiprocessor
    has one block, or two after each other: a tile with all of the shorter mode, and as much of the
    longer one as makes so many tiles.
    """
    bits, processors = problem.bits, problem.processors
    shorter, longer = min(problem.m, problem.n), max(problem.m, problem.n)
    rows = -(-shorter // 64) * 64
    if rows > _MOST_ROWS:
        return []
    consumers = rows // 64
    unit = 16 if bits == 8 else 8  # wgmma multiplies integers by 16 columns, and others by 8
    found = []
    for rounds in (1, 2):
        for split in (1, 2, 4):
            columns = -(-longer * split // (processors * rounds) // unit) * unit
            if not 16 <= columns <= _MOST_COLUMNS[consumers]:
                continue
            tile = (rows, columns, 1024 // bits)
            stages = min(12, (SHARED_MEMORY - 2048) // ((rows + columns) * 128))
            found.append(Config(tile, stages, consumers, split, swap=problem.m > problem.n))
    return found


def sharing_configurations(problem: Problem) -> list[Config]:
    """The configurations of `split_k_gemm` for few rows or columns and one round of tiles, in which
    blocks of a cluster have neighbouring tiles with all of the shorter mode, and load it for each
    other. Those of other extents were not faster (bench/results).
    """
    bits, processors = problem.bits, problem.processors
    shorter, longer = min(problem.m, problem.n), max(problem.m, problem.n)
    unit = 16 if bits == 8 else 8
    columns = -(-shorter // unit) * unit
    found = []
    for rows, most in ((64, 4), (128, 8)):
        tiles = -(-longer // rows)
        # Clusters of 4 and 8 blocks leave some multiprocessors idle.
        if problem.k_bits < _LONG_K or not processors // 2 <= tiles <= processors * 10 // 11:
            continue
        if columns > 128 or not (32 < columns <= 64 if rows == 128 else not 16 < columns <= 64):
            continue
        if columns <= 16 and tiles > processors * 2 // 3:
            continue
        sharing = most
        while tiles % sharing:
            sharing //= 2
        if sharing < most // 2:
            continue
        # With two blocks on a multiprocessor the next kernel's begin before these end.
        for blocks in (2, 1):
            stages = min(16, (SHARED_MEMORY // blocks - 2048) // ((rows + columns) * 128))
            if stages >= _LEAST_STAGES:
                tile = (rows, columns, 1024 // bits)
                made = Config(tile, stages, rows // 64, swap=problem.m < problem.n)
                found.append(replace(made, sharing=sharing, blocks_per_sm=blocks))
                break
    return found


def _with_room(cfg: Config, time: float) -> Config:
    """The configuration with as few stages as leave the next kernel's blocks room, where a block
    has few loads in flight: the next kernel begins sooner.
    """
    is_narrow = cfg.tile[0] == 64 and cfg.tile[1] <= 16
    if cfg.tile[:2] == (64, 32) and cfg.split == 1 and cfg.swap and time > _MANY_ROUNDS:
        tile = (128, *cfg.tile[1:])
        return replace(cfg, tile=tile, consumers=2, stages=5, sharing=2, blocks_per_sm=2)
    if is_narrow and cfg.split > 2 and cfg.blocks_per_sm == 1 and _ROOM[0] < time < _ROOM[1]:
        return replace(cfg, stages=7, blocks_per_sm=3)
    return cfg


def _is_candidate(cfg: Config, shorter: int) -> bool:
    """False for large tiles of which there are several along the shorter mode: there
    `ops.hopper.gemm` is always faster.
    """
    rows, columns, _ = cfg.tile
    return rows == 64 or shorter <= columns


def _splits(rows: int, columns: int) -> tuple[int, ...]:
    """The splits of K to compare: the reduction of large tiles takes too long for more."""
    if rows > 64:
        return (1,)
    return (1, 2, 3, 4, 6, 8, 16) if columns <= 64 else (1, 2)


def _estimated_time(cfg: Config, problem: Problem) -> float:
    """Microseconds by the model for a configuration of `split_k_gemm`."""
    m, n, once, processors = problem.m, problem.n, problem.memory_time, problem.processors
    rows, columns, _ = cfg.tile
    across, along = (n, m) if cfg.swap else (m, n)
    steps = -(-problem.k_bits // 1024)
    if cfg.split > 1 and steps < _MIN_STEPS * cfg.split:
        return math.inf
    steps = -(-steps // cfg.split)
    tiles = -(-across // rows) * -(-along // columns) * problem.batches
    if cfg.split > 1 and tiles >= _MOST_ROUNDS * processors:
        return math.inf  # clusters take too long to begin (measured: 0.65 to 0.85 of cuBLAS)
    blocks = tiles * cfg.split
    # A cluster lies in one GPC: clusters of 3 and more blocks leave a tenth of it idle.
    usable = processors if cfg.split < 3 else processors * 10 // 11
    places = max(1, usable // cfg.split) * cfg.split * cfg.blocks_per_sm
    rounds = -(-blocks // places)
    together = max(
        -(-min(blocks, places) // processors),
        1.4 if cfg.blocks_per_sm > 1 and cfg.sharing == 1 else 1,
    )
    step = max(rows * max(columns, 16) / 32, (rows + columns) * 128 / _L2_TO_SM)
    out = rows * columns * _EPILOGUE * (1 if cfg.split == 1 else 2)
    # One resident block multiplies while another is in its epilogue.
    alone = max(together * steps * step, together * out, steps * step + out)
    loaded = blocks * steps * 128 * (min(rows, across) + min(columns, along) / cfg.sharing)
    loading = _LOADING_TOGETHER if cfg.sharing > 1 else _LOADING
    once *= max(1.0, loading * processors / min(blocks, processors))
    # The tiles along the shorter mode: the longer operand is loaded for each.
    repeated = -(-along // columns) if along <= across else -(-across // rows)
    once *= 1 + _RELOADED * (repeated - 1)
    if rounds > 1:
        once *= rounds * places / blocks  # not all blocks load in the last round
    begin = _KERNEL + _BLOCK * min(blocks, 4 * processors) + _CLUSTER_BLOCK * (cfg.split - 1)
    is_alone = cfg.blocks_per_sm == 1 or cfg.sharing > 1
    factor = 1.0 if is_alone else _SHARED.get((rows, columns), 1.0)
    if not is_alone and rows > 64 and columns > 64 and blocks <= processors:
        factor = _FEWER_THAN_PLACES  # some multiprocessors get several blocks, and others none
    return factor * (begin + max(once, loaded / _L2, rounds * alone / _CLOCK))
