"""The choice of a Hopper kernel and its configuration for a product: `ops.hopper.gemm`,
`split_k_gemm`, or one of these for slices of K that are reduced afterwards (`parallel_split_k`).

For products of 16-bit floats, and batches of them, `ops.hopper.model` estimates the time of each.
For others rules do, in microseconds on an H200: the longest of the loads from device memory, the
loads of all blocks from L2, and the rounds of tiles on each multiprocessor, with numbers that were
fitted to 650 measurements (bench/results).
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from basedsl_cute.ops.hopper import candidates, config, few_rows, model, parallel_split_k
from basedsl_cute.ops.hopper.few_rows import (
    balanced_configurations,
    one_round_of_all_rows,
    pairs_in_parts,
    parts_of_wide_tiles,
    parts_that_share,
    shared_along_n,
    sharing_configurations,
    with_room,
)
from basedsl_cute.ops.hopper.problem import LONG_K, REDUCTION, Problem
from basedsl_cute.ops.hopper.split_k_gemm import Config

__all__ = [
    "CANDIDATES",
    "Problem",
    "balanced_configurations",
    "choose_by_rules",
    "choose_hopper_kernel",
    "ranked_hopper_kernels",
]

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
_LEAST_TO_BALANCE = 2.0  # microseconds of loads from device memory
_FEW = 16  # rows, for which they were slower
_LOADING_TOGETHER = 0.6  # as `_LOADING`, of blocks that share loads
_SHORT_K = 1024 * 16  # up to which C is stored by warps, where tiles are one round
_VERY_LONG_K = 16384 * 16  # from which it makes no difference which operand pairs share
_WIDEST_OF_256 = 176  # columns of a tile of 256 rows: with 192 some epilogues spill
_TO_FOURS = ((64, 96), (64, 128), (128, 64))  # tiles of pairs that fours of 64 x 128 replace
_MOST_ROUNDS = 2  # of tiles over the multiprocessors, where blocks of a cluster share K

_CLOCK = 1750.0  # cycles in a microsecond
_LOADING = 0.8  # the fraction of the multiprocessors that saturates device memory
_RELOADED = 0.1  # the fraction loaded again for each further tile along the shorter mode
_L2 = 10e6  # bytes in a microsecond from L2, to all multiprocessors
_L2_TO_SM = 53.0  # bytes in a cycle from L2, to each multiprocessor
_KERNEL = 0.2  # microseconds of any kernel
_BLOCK = 0.0104  # microseconds more for each resident block
_CLUSTER_BLOCK = 0.43  # microseconds more for each block of a cluster: they wait for each other
_EPILOGUE = 0.22  # cycles for an element of a tile, and as many again for the reduction
_PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # slices of K for `parallel_split_k`
_MAX_WORKSPACE = 2**24  # bytes
_WORTH = 0.93  # the fraction of the usual choice's time that another has to reach
# Of products that were measured. For those of more, rules most often choose tiles of 128 x 256:
# these are kept, unless the fitted model finds them so many times as slow as another.
_MOST_OPERATIONS, _DOUBTFUL = 4e11, 1.1
_NAMES = {
    config.Config: "hopper",
    Config: "hopper split",
    parallel_split_k.Config: "hopper parts",
}
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
_SHORT_AND_TURNED = 1.2  # tiles of 64 rows of a short K, where neither K is contiguous
_TILES_OF_144 = 0.97  # of 128 rows, where K is contiguous
# Pairs of tiles along M, where N of the longer operand is contiguous: pieces of 64 columns are
# loaded as they lie, others in smaller boxes (measured: 512 x 1120 x 2560, 512 x 1536 x 3072).
_PAIRS_ALONG_N = {(128, 64): 0.8, (64, 96): 1.13}
# How much longer tiles of B take to load than their bytes, by the width of the rows they are loaded
# as (measured: 768 x 1536 x 1024 with N contiguous, tiles of 64 x 144, 160 and 192).
_NARROW_ROWS = {16: 3.0, 32: 1.4}
_NARROW_PAIRS = 1.3  # of tiles of up to 96 columns in pairs along N, for a K below 4,096


def choose_hopper_kernel(problem: Problem) -> tuple[str, Any]:
    """The fastest kernel by the model, as its name in `ops.gemm.matmul`, and its configuration."""
    if not _is_fitted(problem):
        return choose_by_rules(problem)
    found = candidates.candidates(problem)
    times = _modelled_times(problem, found.table)
    best = int(np.argmin(times))
    if 2 * problem.m * problem.n * problem.k > _MOST_OPERATIONS:
        name, cfg = choose_by_rules(problem)
        (time,) = _modelled_times(problem, model.columns_of([cfg]))
        is_widest = isinstance(cfg, config.Config) and cfg.tile[:2] == (128, 256)
        if is_widest and time < _DOUBTFUL * times[best]:
            return name, cfg
    cfg = found.at(best, problem)
    return _NAMES[type(cfg)], cfg


def _is_fitted(problem: Problem) -> bool:
    """True for the products of which `model` was fitted to measurements."""
    return problem.bits == problem.bits_of_c == 16 and problem.stores


def _by_the_fit(problem: Problem, most: int) -> list[Any]:
    """The `most` fastest configurations by the fitted model."""
    found = candidates.candidates(problem)
    times = _modelled_times(problem, found.table)
    return [found.at(int(row), problem) for row in np.argsort(times, kind="stable")[:most]]


def _modelled_times(problem: Problem, table: dict[str, Any]) -> Any:
    """Microseconds of the product by each configuration of a table, by the fitted model."""
    facts = _model_facts(problem)
    if problem.is_column_major:  # slices of K are computed as C^T = B A^T
        is_turned = table["parts"] > 1
        pairs = zip(_model_facts(problem.row_major()), facts, strict=True)
        facts = tuple(np.where(is_turned, *pair) for pair in pairs)
    return model.modelled_time(table, model.Products(*facts))


def _model_facts(problem: Problem) -> tuple[Any, ...]:
    of_longer, of_shorter = int(problem.balances), int(problem.shorter_balances)
    of_a, of_b = (of_longer, of_shorter) if problem.m > problem.n else (of_shorter, of_longer)
    return problem.m, problem.n, problem.k, problem.batches, of_a, of_b, problem.processors


def choose_by_rules(problem: Problem) -> tuple[str, Any]:
    """The choice by the model of other products, whose numbers are those of this file."""
    found = _one_kernel(problem)
    best = _WORTH * found[0]
    if problem.batches > 1 or best < REDUCTION + problem.memory_time:
        return found[1:]
    problem = problem.row_major()  # as `parallel_split_k` computes it
    for parts in _PARTS:
        if problem.k_bits % (1024 * parts) or not problem.has_parts(parts):
            continue
        if 4 * parts * problem.m * problem.n > _MAX_WORKSPACE:
            break
        time, _, cfg = _one_kernel(problem.in_parts(parts))
        time += problem.reduction_time(parts)
        if time < best:
            if isinstance(cfg, config.Config):
                cfg = replace(cfg, promotion=128)
            made = parallel_split_k.Config(parts, cfg, candidates.threads_of_a_sum(problem, parts))
            best, found = time, (time, "hopper parts", made)
    if isinstance(found[2], parallel_split_k.Config):
        return found[1], parts_that_share(found[2], problem)
    wide = None
    if found[1] == "hopper split":
        wide = parts_of_wide_tiles(problem) or pairs_in_parts(problem)
    return found[1:] if wide is None else ("hopper parts", wide)


def ranked_hopper_kernels(problem: Problem, most: int = 8) -> list[Any]:
    """The configurations to measure: what `choose_hopper_kernel` finds, and of each of the three
    kernels the `most` that are fastest by the model, of many more than it compares.
    """
    chosen = choose_hopper_kernel(problem)[1]
    rules = choose_by_rules(problem)[1]
    fitted = _by_the_fit(problem, most) if _is_fitted(problem) else []
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
    return list(dict.fromkeys((chosen, rules, *fitted, *worth)))


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
    m, n, k = problem.m, problem.n, problem.k
    # Where N of B is contiguous, its tiles are loaded as rows of 64 columns, or of the largest
    # power of two that divides theirs: narrow rows take nearly as long as wide ones, which bounds
    # tiles that are wide and not tall.
    has_wide_rows = problem.balances if n > m else problem.shorter_balances
    rows, columns, _ = cfg.tile
    if rows == 64 and columns > 96 and not has_wide_rows and problem.batches == 1:
        columns *= _NARROW_ROWS.get(columns & -columns, 1.0)
    if problem.batches > 1:  # no cluster has tiles of two
        across = rows * cfg.cluster[0]
        m = -(-m // across) * across * problem.batches
    facts = problem.bits, problem.processors, problem.bits_of_c, columns
    return config.modelled_cycles(cfg, m, n, k, *facts)


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
    is_filled = shorter <= 32 and problem.processors // 2 < tiles <= problem.processors
    is_filled = is_filled and problem.memory_time < few_rows.MANY_ROUNDS
    # And few rows of a small product, of which blocks that share K are enough.
    is_small = shorter <= 32 and tiles <= problem.processors // 2 and problem.memory_time < 10.0
    if problem.balances and is_one and is_long and shorter > _FEW and not (is_filled or is_small):
        for other in balanced_configurations(problem):
            its = _estimated_time(other, problem)
            if its < time:
                time, cfg = its, other
    for other in sharing_configurations(problem) if is_one else ():
        its = _estimated_time(other, problem)
        if its <= time:
            time, cfg = its, other
    whole = one_round_of_all_rows(problem)
    if whole is not None:
        return time, "hopper split" if isinstance(whole, Config) else "hopper", whole
    if problem.stores:
        its, hopper = _fastest_hopper(problem)
        if its <= time:
            return its, "hopper", hopper
    along = shared_along_n(cfg, problem)
    if along is not None:
        return time, "hopper", along
    return time, "hopper split", with_room(cfg, problem)


def _fastest_hopper(problem: Problem) -> tuple[float, Any]:
    """The time (microseconds) and configuration of the fastest persistent kernel: one of the usual
    ones, unless one of the others is worth being compiled.
    """
    once, bits, processors = problem.memory_time, problem.bits, problem.processors
    # Of a short K, where neither K is contiguous, others were slower in several rounds.
    along_k = problem.balances or problem.shorter_balances or problem.k_bits > _SHORT_K
    along_k = along_k or problem.batches > 1
    is_round = problem.tiles(128, 96) <= processors

    def timed(cfg: Any) -> float:
        cycles = _modelled_cycles(cfg, problem)
        rows, columns, _ = cfg.tile
        loading = max(1.0, _LOADING * processors / min(problem.tiles(rows, columns), processors))
        factor = 1.0
        if (rows, columns) == (128, 144) and problem.balances:
            factor = _TILES_OF_144
        if rows == 64 and not along_k and not is_round:
            factor = _SHORT_AND_TURNED
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
        if problem.k_bits <= LONG_K and 64 < min(problem.m, problem.n) <= few_rows.MOST_ROWS:
            if problem.batches == 1 and problem.tiles(rows, columns) > processors:
                bytes_factor = 1.0
        took = max(_HOPPER[1] * cycles / _CLOCK, bytes_factor * once * loading)
        return factor * (_HOPPER[0] + took)

    best, found = math.inf, None
    every = (*_candidates(bits), _others(bits))
    # Wider ones would not stay in registers.
    for kind in every if problem.bits_of_c < 32 and (along_k or is_round) else every[:1]:
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
    if (rows, columns) in _TO_FOURS and cfg.pingpong and cfg.cluster != (1, 1):
        if m % 256 == 0 and problem.batches == 1 and problem.k_bits >= LONG_K:
            if processors * 2 // 3 < problem.tiles(64, 128) <= in_fours:
                more = {"along_m": False, "by_warps": True}
                narrow = problem.tiles(64, 96)
                if problem.n < m and narrow <= processors and -(-problem.n // 96) % 2 == 0:
                    tile = (64, 96, 1024 // problem.bits)  # the longer operand is shared
                    return config.Config(tile, 10, 1, cluster=(1, 2), **more)
                tile = (64, 128, 1024 // problem.bits)
                return config.Config(tile, 8, 1, cluster=(4, 1), **more)
    if (rows, columns) == (64, 96) and cfg.cluster == (2, 1) and m % (4 * rows) == 0:
        if tiles <= in_fours:
            return replace(cfg, cluster=(4, 1))
    if (rows, columns) == (64, 128) and cfg.pingpong and tiles <= processors:
        if problem.batches == 1 and problem.k_bits <= _SHORT_K and problem.bits_of_c == 16:
            return _in_eights(problem) or replace(cfg, by_warps=True)
    if (rows, columns) == (128, 128) and cfg.cluster == (2, 1) and problem.batches == 1:
        if tiles <= processors and -(-m // rows) % 2 and -(-problem.n // columns) % 2 == 0:
            return config.filled_config(128, 128, problem.bits, 2, cluster=(1, 2))
    if (rows, columns) == (128, 192) and m % 192 == 0 and m % rows and tiles <= processors:
        if -(-problem.n // 128) % 2 == 0 and problem.bits_of_c <= 16:
            return config.filled_config(192, 128, problem.bits, 3, cluster=(1, 2))
    if (rows, columns) == (192, 96) and tiles <= processors and problem.bits_of_c == 16:
        return replace(cfg, slots=3, deferred=False, whole=True)
    if rows == 128 and cfg.defers(16) and problem.k_bits >= LONG_K and problem.bits_of_c <= 16:
        if m % 256 == 0 and processors < tiles <= 2 * processors:
            return _one_round(problem) or cfg
        halved = -(-problem.tiles(256, 160) // processors)  # rounds of tiles twice as tall
        if (rows, columns) == (128, 160) and m % 256 == 0 and 2 * halved <= -(-tiles // processors):
            cluster = (1, 2) if -(-problem.n // columns) % 2 == 0 else (2, 1)
            return config.filled_config(256, 160, problem.bits, 2, cluster=cluster)
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
