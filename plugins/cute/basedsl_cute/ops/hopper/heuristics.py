"""Which Hopper kernel a product takes, and how configured: `hopper_gemm`, `hopper_split_gemm`, or
one of them for parts of K that are summed afterwards, `hopper_parallel_split_k`.

By a model of the time of each on an H200, in microseconds: what is loaded from memory once, what
all blocks load from L2, and what each multiprocessor does in turn, whichever takes longest. Its
numbers were fitted to 650 measurements (bench/results).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from basedsl_cute.ops.hopper import config, parallel_split_k
from basedsl_cute.ops.hopper.split_k_gemm import Config

__all__ = ["CANDIDATES", "choose"]

# Tiles (M, N) of `hopper_split_gemm`, stages, blocks of a multiprocessor, and how many blocks may
# share K. Where a multiprocessor could have several blocks of a small grid, some get two and others
# none, so that large stages are better there.
CANDIDATES: tuple[dict[str, Any], ...] = (
    {"tile": (64, 8), "stages": 12},
    {"tile": (64, 16), "stages": 12},
    {"tile": (64, 16), "stages": 7, "blocks_per_sm": 3},
    {"tile": (64, 32), "stages": 12},
    {"tile": (64, 32), "stages": 6, "blocks_per_sm": 3},
    {"tile": (64, 64), "stages": 12},
    {"tile": (64, 64), "stages": 6, "blocks_per_sm": 2},
    {"tile": (64, 128), "stages": 9},
    {"tile": (128, 16), "stages": 4, "blocks_per_sm": 3, "consumers": 2},
    {"tile": (128, 64), "stages": 4, "blocks_per_sm": 2, "consumers": 2},
    {"tile": (128, 128), "stages": 3, "blocks_per_sm": 2, "consumers": 2},
)
_STEPS = 4  # of K for each block, at least

_CLOCK = 1750.0  # cycles of a microsecond
_MEMORY = 3.85e6  # bytes of a microsecond from device memory
_LOADING = 0.8  # of the multiprocessors, which get as much of it as all
_AGAIN = 0.1  # so much of it is loaded again for each further tile along the shorter mode
_L2 = 10e6  # bytes of a microsecond from L2, to all multiprocessors
_TO_SM = 53.0  # of a cycle, to each
_BEGIN = 0.2  # microseconds of any kernel
_BLOCK = 0.0104  # more for each block, of those that are there together
_PART = 0.43  # more for each block of a cluster: they begin together, and wait for each other
_EPILOGUE = 0.22  # cycles for an element of a tile, and as much again for adding parts up
_PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # of K, that another kernel sums
_STEPS_OF_A_PART = 8
_WORKSPACE = 2**24  # bytes of all parts together, at most
_WORTH = 0.93  # of the time of what is usual, to take something else
_SUM = 2.0  # microseconds of that kernel
_SUMMED = 3.5e6  # bytes that it reads or writes in one
_HOPPER = (1.0, 1.2)  # microseconds of `hopper_gemm`, and so much of what its own model says


def choose(
    m: int,
    n: int,
    k: int,
    batches: int,
    bits: int,
    bits_of_c: int,
    processors: int,
    stores: bool,
    is_column_major: bool = False,
) -> tuple[str, Any]:
    """The kernel's name in `multiply` and its configuration, for a product of elements of `bits` on
    so many multiprocessors; `stores` says whether TMA can write C, which may be column-major.
    """
    found = _one_kernel(m, n, k, batches, bits, bits_of_c, processors, stores)
    best = _WORTH * found[0]
    if batches > 1 or best < _SUM + _once(m, n, k, 1, bits, bits_of_c):
        return found[1:]
    if is_column_major:  # `hopper_parallel_split_k` multiplies C^T = B A^T
        m, n = n, m
    for parts in _PARTS:
        each, rest = divmod(k, parts)
        if rest or each * bits % 1024 or each * bits // 1024 < _STEPS_OF_A_PART:
            continue
        if 4 * parts * m * n > _WORKSPACE:
            break
        time, _, cfg = _one_kernel(-(-m // 128) * 128, n, each, parts, bits, 32, processors, True)
        time += _SUM + m * n * (4 * parts + bits_of_c / 8) / _SUMMED
        if time < best:
            best, found = time, (time, "hopper parts", parallel_split_k.Config(parts, cfg))
    return found[1:]


def _one_kernel(
    m: int, n: int, k: int, batches: int, bits: int, bits_of_c: int, processors: int, stores: bool
) -> tuple[float, str, Any]:
    """Microseconds, the kernel's name and its configuration, without parts summed later."""
    once = _once(m, n, k, batches, bits, bits_of_c)
    every = (
        (_time(c, m, n, k, batches, bits, once, processors), c)
        for c in _all(bits, m < n)
        if not stores or _suits(c, min(m, n))
    )
    time, cfg = min(every, key=lambda found: found[0])
    if stores:
        of_hopper = m * batches, n, k, bits, processors, bits_of_c
        cycles, hopper = config.weighed(*of_hopper)
        fewer, other = config.weighed(*of_hopper, config.IN_BETWEEN)
        if bits_of_c < 32 and fewer < _WORTH * cycles:  # wider ones would not stay in registers
            cycles, hopper = fewer, other
        its = _HOPPER[0] + _HOPPER[1] * max(cycles / _CLOCK, once)
        if its <= time:
            return its, "hopper", hopper
    return time, "hopper split", cfg


def _once(m: int, n: int, k: int, batches: int, bits: int, bits_of_c: int) -> float:
    """Microseconds in which everything comes from memory or goes there."""
    return batches * ((m + n) * k * bits + m * n * bits_of_c) / 8 / _MEMORY


@functools.cache
def _all(bits: int, swap: bool) -> list[Config]:
    return [
        Config(**c | {"tile": (*c["tile"], 1024 // bits), "split": split, "swap": swap})
        for c in CANDIDATES
        for split in _parts(*c["tile"])
    ]


def _suits(cfg: Config, shorter: int) -> bool:
    """Whether `hopper_gemm` is not better for certain: with large tiles, if there are several along
    the shorter mode.
    """
    rows, columns, _ = cfg.tile
    return rows == 64 or (columns < 128 and shorter <= columns)


def _parts(rows: int, columns: int) -> tuple[int, ...]:
    """In how many parts K is worth being divided: sums of large tiles take long to add up."""
    if rows > 64:
        return (1,)
    return (1, 2, 3, 4, 6, 8, 16) if columns <= 64 else (1, 2)


def _time(
    cfg: Config, m: int, n: int, k: int, batches: int, bits: int, once: float, processors: int
) -> float:
    rows, columns, _ = cfg.tile
    across, along = (n, m) if cfg.swap else (m, n)
    steps = -(-k * bits // 1024)
    if cfg.split > 1 and steps < _STEPS * cfg.split:
        return math.inf
    steps = -(-steps // cfg.split)
    tiles = -(-across // rows) * -(-along // columns) * batches
    blocks = tiles * cfg.split
    # Larger clusters leave a tenth of the multiprocessors out: they do not divide what is theirs.
    usable = processors if cfg.split < 3 else processors * 10 // 11
    places = max(1, usable // cfg.split) * cfg.split * cfg.blocks_per_sm
    rounds = -(-blocks // places)
    together = max(-(-min(blocks, places) // processors), 1.4 if cfg.blocks_per_sm > 1 else 1)
    step = max(rows * max(columns, 16) / 32, (rows + columns) * 128 / _TO_SM)
    out = rows * columns * _EPILOGUE * (1 if cfg.split == 1 else 2)
    # One block multiplies while another is in its epilogue.
    alone = max(together * steps * step, together * out, steps * step + out)
    loaded = blocks * steps * 128 * (min(rows, across) + min(columns, along))
    once *= max(1.0, _LOADING * processors / min(blocks, processors))
    once *= 1 + _AGAIN * (-(-along // columns) - 1)
    if rounds > 1:
        once *= rounds * places / blocks  # in the last one not all of them load
    begin = _BEGIN + _BLOCK * min(blocks, 4 * processors) + _PART * (cfg.split - 1)
    return begin + max(once, loaded / _L2, rounds * alone / _CLOCK)
