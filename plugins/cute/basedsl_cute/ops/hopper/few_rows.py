"""Configurations of Hopper kernels for products with few rows or columns, which memory bounds: each
operand is loaded once, by as many multiprocessors as saturate memory.
"""

from __future__ import annotations

from dataclasses import replace

from basedsl_cute.ops.hopper import config, parallel_split_k
from basedsl_cute.ops.hopper.config import SHARED_MEMORY
from basedsl_cute.ops.hopper.problem import LONG_K, MIN_STEPS_OF_PART, Problem
from basedsl_cute.ops.hopper.split_k_gemm import Config

__all__ = [
    "MANY_ROUNDS",
    "MOST_ROWS",
    "balanced_configurations",
    "one_round_of_all_rows",
    "pairs_in_parts",
    "parts_of_wide_tiles",
    "parts_that_share",
    "shared_along_n",
    "sharing_configurations",
    "with_room",
]

# Balanced tiles have all of the shorter mode: the most rows, and the most columns for each number
# of warpgroups, which keep the sums in registers.
MOST_ROWS = 192
_MOST_COLUMNS = {1: 256, 2: 256, 3: 176}
_LEAST_STAGES = 8  # of blocks that share the loads of the shorter mode
MANY_ROUNDS = 40.0  # microseconds of loads of all blocks of a cluster, in rounds
_ROOM = (4.0, 10.0)  # microseconds of loads for which room for the next kernel is worth stages
_SOON = 30.0  # microseconds of loads up to which it is where K is not shared
_QUARTER_OF_K = 1024 * 16  # bits of K of each part of a product of two tiles of 64 rows
_SHORT_K = 1536 * 16  # bits of K of which few stages are enough


def balanced_configurations(problem: Problem) -> list[Config]:
    """The configurations of `split_k_gemm` for few rows or columns, in which each multiprocessor
    has one block, or two after each other: a tile with all of the shorter mode, and as much of the
    longer one as makes so many tiles.
    """
    bits, processors = problem.bits, problem.processors
    shorter, longer = min(problem.m, problem.n), max(problem.m, problem.n)
    rows = -(-shorter // 64) * 64
    if rows > MOST_ROWS:
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
        if problem.k_bits < LONG_K or not processors // 2 <= tiles <= processors * 10 // 11:
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
                promotion = 128 if columns > 16 else made.promotion
                made = replace(made, sharing=sharing, blocks_per_sm=blocks, promotion=promotion)
                found.append(made)
                break
    return found


def with_room(cfg: Config, problem: Problem) -> Config:
    """The configuration with as few stages as leave the next kernel's blocks room, where a block
    has few loads in flight: the next kernel begins sooner.
    """
    time, processors = problem.memory_time, problem.processors
    rows, columns, k = cfg.tile
    tiles = -(-max(problem.m, problem.n) // 128)  # of 128 rows of the longer operand
    if not cfg.swap or cfg.sharing > 1 or problem.batches > 1:
        return cfg
    if (rows, columns) == (64, 96) and cfg.split == 2 and problem.k_bits <= LONG_K:
        if problem.shortest <= columns and tiles * 4 > processors * 9 // 10:
            return replace(cfg, split=1, stages=11)
    if (rows, columns) == (64, 32):
        if cfg.split == 1 and time > MANY_ROUNDS:
            tile = (128, 32, k)
            return replace(cfg, tile=tile, consumers=2, stages=5, sharing=2, blocks_per_sm=2)
        if cfg.split in (2, 3) and cfg.blocks_per_sm == 1 and 3.0 < time < _ROOM[1]:
            return replace(cfg, stages=9, blocks_per_sm=2)
        is_one_round = processors // 2 < -(-max(problem.m, problem.n) // 64) <= processors
        if cfg.split == cfg.blocks_per_sm == 1 and is_one_round:
            return replace(cfg, stages=9, blocks_per_sm=2, promotion=128)
    if rows == 64 and columns <= 16 and cfg.split == 1 and _ROOM[1] < time < _SOON:
        if processors * 2 // 3 < 2 * tiles <= processors * 10 // 11 and cfg.blocks_per_sm == 1:
            return replace(cfg, stages=7 if columns == 16 else 8, blocks_per_sm=3)
        # Half as many blocks, one on each multiprocessor.
        if processors * 6 // 10 <= tiles <= processors < 2 * tiles and problem.shortest <= 8:
            return replace(cfg, tile=(128, 8, k), consumers=2, stages=6, blocks_per_sm=2)
    if (rows, columns) == (128, 16) and problem.k_bits <= _SHORT_K and tiles > processors:
        return replace(cfg, tile=(64, 16, k), consumers=1, stages=5, blocks_per_sm=4)
    if (rows, columns) == (128, 16) and problem.shortest <= 8 and tiles <= processors:
        return replace(cfg, stages=6, blocks_per_sm=2)
    if rows == 64 and columns <= 16 and cfg.split > 2 and cfg.blocks_per_sm == 1:
        if _ROOM[0] < time < _ROOM[1]:
            return replace(cfg, stages=7, blocks_per_sm=3)
    return cfg


def parts_of_wide_tiles(problem: Problem) -> parallel_split_k.Config | None:
    """The configuration for a C of two tiles of 64 rows, with a quarter of K for each tile of 128
    or 96 columns, of which pairs share B; None where these are not one round.

    Slices of a cluster with tiles of 64 columns load a third more (128 x 2048 x 8192: 16.3 us of
    14.0).
    """
    if not 64 < problem.m <= 128 or problem.k_bits % 4096 or problem.k_bits // 4 < _QUARTER_OF_K:
        return None
    for columns, stages in ((128, 8), (96, 10)):
        tiles = problem.tiles(64, columns) * 4
        if problem.processors * 9 // 10 <= tiles <= problem.processors:
            tile = (64, columns, 1024 // problem.bits)
            inner = config.Config(tile, stages, 1, cluster=(2, 1), along_m=False, promotion=128)
            return parallel_split_k.Config(4, inner, 4)
    return None


def parts_that_share(cfg: parallel_split_k.Config, problem: Problem) -> parallel_split_k.Config:
    """The configuration for a C of two tiles of 64 rows, with a part of K for each pair of blocks,
    which share B.
    """
    m, n, k_bits, bits = problem.m, problem.n, problem.k_bits, problem.bits
    parts = problem.processors // 2
    parts = 1 << parts.bit_length() - 1
    if not (64 < m <= 128 and 32 < n <= 128) or k_bits % (1024 * parts):
        return cfg
    if k_bits // (1024 * parts) < MIN_STEPS_OF_PART:
        return cfg
    columns = -(-n // 16) * 16
    stages = min(9, (SHARED_MEMORY - 2048) // ((64 + columns) * 128))
    inner = Config((64, columns, 1024 // bits), stages, sharing=2)
    return parallel_split_k.Config(parts, inner, 8)


def pairs_in_parts(problem: Problem) -> parallel_split_k.Config | None:
    """The configuration for a C of a few tiles of 128 rows, with a quarter of K for each, of which
    pairs share B: as wide as makes one round of nearly all multiprocessors; None where no width
    does.

    Slices of a cluster with tiles of 64 x 96 load half more (256 x 1280 x 8192: 21.7 us of 12.8).
    """
    if problem.m % 256 or problem.bits != 16 or problem.k_bits % 4096 or not problem.balances:
        return None
    if problem.k_bits // 4 < LONG_K or problem.m > 512:
        return None
    for columns in (80, 96, 112):
        tiles = problem.tiles(128, columns) * 4
        if problem.processors * 9 // 10 <= tiles <= problem.processors:
            inner = config.filled_config(128, columns, 16, 2, cluster=(2, 1))
            stages = min(8, (SHARED_MEMORY - 2048 - 4 * 64 * 64) // ((128 + columns) * 128))
            inner = replace(inner, stages=stages, slots=2, deferred=False, promotion=128)
            return parallel_split_k.Config(4, inner, 4)
    return None


def one_round_of_all_rows(problem: Problem) -> Config | config.Config | None:
    """The configuration for 129 to 192 rows with one tile for each multiprocessor, which
    has all of them and all of K; None where tiles would be narrow for a long K.

    Blocks that share K add up tall tiles for long (192 x 8192 x 5440: 31.2 us of 29.1).
    """
    columns = -(-problem.n // problem.processors // 16) * 16
    if not problem.balances or problem.bits != 16 or not MOST_ROWS - 64 < problem.m <= MOST_ROWS:
        return None
    if problem.m > problem.n or problem.k_bits < LONG_K // 2 or problem.batches > 1:
        return None
    if columns == 48 and problem.k_bits == LONG_K and problem.stores and problem.bits_of_c <= 16:
        return config.filled_config(MOST_ROWS, columns, 16, 3)
    if columns != 64:
        return None
    stages = min(12, (SHARED_MEMORY - 2048) // ((MOST_ROWS + columns) * 128))
    return Config((MOST_ROWS, columns, 64), stages, 3)


def shared_along_n(cfg: Config, problem: Problem) -> config.Config | None:
    """The persistent configuration of a product whose N is contiguous, in place of one whose blocks
    share the few rows: 64 x 14336 x 4096 takes 30.0 us of 30.9. None for others.
    """
    if problem.balances or not problem.stores or problem.m > 64 or problem.bits_of_c > 16:
        return None
    if cfg.sharing < 4 or cfg.tile[0] != 128 or not cfg.swap or problem.is_column_major:
        return None
    tile = (64, 128, 1024 // problem.bits)
    return config.Config(
        tile, 8, 1, cluster=(1, cfg.sharing), along_m=False, deferred=True, promotion=128
    )
