"""The time of a product of 16-bit floats on a Hopper GPU by a fitted model, for many configurations
at once.

`Terms` are the facts of a configuration and a product on which the time depends: rounds of tiles
over the multiprocessors, cycles of wgmma, rows that TMA loads, bytes from L2 and device memory.
`physical_time` puts them together with numbers that were fitted to timings (`model_numbers`), and
`Correction` multiplies by what small neural networks learned from the same timings about how the
terms act on each other: which blocks share loads well depends on extents, tiles and K together.
All of it works on arrays, with an element for each configuration. bench/gpu/fit_choice.py fits the
numbers again, for another GPU or other kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.ops.hopper import parallel_split_k
from basedsl_cute.ops.hopper.model_numbers import PHYSICAL
from basedsl_cute.ops.hopper.split_k_gemm import Config as SplitConfig

__all__ = [
    "COLUMNS",
    "CORRECTION",
    "GPCS",
    "Correction",
    "Products",
    "Terms",
    "columns_of",
    "gpcs_have_parts",
    "inputs",
    "modelled_time",
    "physical_time",
    "terms",
]

# The numbers that describe a configuration, each a column of a table of configurations.
COLUMNS = (
    "parts",  # slices of K that a second kernel adds up, 1 for none
    "persistent",  # 1 for `ops.hopper.gemm`, 0 for `split_k_gemm`
    "rows",
    "columns",  # of a tile
    "consumers",
    "pingpong",
    "stages",  # of 64 elements of K
    "split",  # slices of K that a cluster adds up
    "blocks",  # of a multiprocessor
    "cluster_m",
    "cluster_n",
    "swap",
    "promotion",
    "by_warps",
    "deferred",
)
# The part of the multiprocessors that clusters of so many blocks find, by the blocks of a cluster:
# those of a cluster lie in one GPC.
_USABLE = np.array([0, 132, 132, 114, 120, 115, 102, 112, 112, *[108] * 4, *[96] * 4]) / 132
GPCS = 8  # to which a Hopper GPU deals clusters in turn
_FEW = 192  # rows or columns, which one tile can have
_STEP = 128  # bytes of K of a step
_MOST_BLOCKS = 4  # of a multiprocessor, of which the launch of each takes time


class Products(NamedTuple):
    """Products of 16-bit floats, with a number or an array of numbers for each fact."""

    m: Any
    n: Any
    k: Any
    batches: Any
    k_in_a: Any  # K of A is contiguous
    k_in_b: Any
    processors: Any  # multiprocessors of the GPU


class Terms(NamedTuple):
    """The facts that the time of each configuration consists of."""

    rounds: Any  # tiles of the busiest multiprocessor
    uneven: Any  # and those it may get more where it has places for several blocks
    fuller: Any  # tiles of the busiest multiprocessor, by those of each if all had as many
    idle: Any  # the places of all rounds, by the clusters in them
    later: Any  # 1 where such blocks are more than places
    steps: Any  # of K, of each tile
    mma: Any  # cycles of wgmma in a step
    from_l2: Any  # bytes that a block reads in a step, without what others load for it
    loaded: Any  # bytes that arrive for a step, those of narrow rows several times
    turned: Any  # and those of them whose K is not contiguous
    shared: Any  # and those that others have too
    empty: Any  # rows of a step that TMA fills with zeros, in all tiles
    edge: Any  # and in tiles at the edge
    crooked: Any  # bytes of rows that begin within 128 bytes
    blocks: Any
    used: Any  # multiprocessors
    alone: Any  # 1 - the part of the multiprocessors used by blocks without a cluster
    flight: Any  # megabytes that all blocks can have in flight
    once: Any  # megabytes of operands and result
    partial: Any  # megabytes of the workspace
    result: Any  # megabytes
    again: Any  # megabytes, times the logarithm of how many blocks load them
    last: Any  # the idle part of the last round, for few rows
    tile: Any  # elements
    overlapped: Any  # 1 where one tile's epilogue is under the next tile's products
    narrow: Any  # how many times more pieces of C there are than of 64 columns
    turns: Any  # 1 for consumers that take turns, in several rounds
    one_consumer: Any  # 1 where a tile has one warpgroup
    persistent: Any
    parts: Any
    split: Any
    blocks_per_sm: Any
    cluster_m: Any
    cluster_n: Any
    by_warps: Any
    promotion: Any


def columns_of(configurations: Sequence[Any]) -> dict[str, Any]:
    """The table of these configurations: an array for each of `COLUMNS`."""
    rows = []
    for cfg in configurations:
        parts = 1
        if isinstance(cfg, parallel_split_k.Config):
            parts, cfg = cfg.parts, cfg.gemm
        common = (*cfg.tile[:2], cfg.consumers)
        if isinstance(cfg, SplitConfig):
            stages = cfg.stages * cfg.tile[2] // (_STEP // 2)
            row = (parts, 0, *common, 0, stages, cfg.split, cfg.blocks_per_sm, cfg.sharing, 1,
                   cfg.swap, cfg.promotion, 0, 0)  # fmt: skip
        else:
            row = (parts, 1, *common, cfg.pingpong, cfg.stages, 1, 1, *cfg.cluster, cfg.swap,
                   cfg.promotion, cfg.by_warps, cfg.defers(16) and parts == 1)  # fmt: skip
        rows.append(row)
    return dict(zip(COLUMNS, np.array(rows, dtype=np.int64).T, strict=True))


def _ceil_div(x: Any, y: Any) -> Any:
    return -(-x // y)


def gpcs_have_parts(table: Mapping[str, Any], m: Any, n: Any, k: Any) -> Any:
    """True for long slices of K in tiles of 128 x 128, by pairs, of which each GPC can have whole
    ones. Tiles of a slice read the same lines of A and B; wider tiles read less, and gain nothing.
    """
    rows, columns, parts = table["rows"], table["columns"], table["parts"]
    across, along = _ceil_div(m, rows), _ceil_div(n, columns)
    cm, cn = table["cluster_m"], table["cluster_n"]
    of_a_part = _ceil_div(across, cm) * _ceil_div(along, cn)  # clusters
    is_square = (rows == 128) & (columns == 128) & (table["persistent"] == 1) & (cm * cn == 2)
    is_whole = (parts * of_a_part == 8 * GPCS) & (GPCS % of_a_part == 0)
    return is_square & is_whole & (parts > 1) & (k >= _LONG_PART * parts)


def _row_width(extent: Any) -> Any:
    """The columns that TMA loads as one row where these, not K, are contiguous."""
    return np.minimum(64, extent & -extent)


def terms(table: Mapping[str, Any], p: Products) -> Terms:
    """The terms of each configuration of a table for the product, or for a product each."""
    t = {name: table[name] for name in COLUMNS}
    swap, split, b = t["swap"] == 1, t["split"], t["blocks"]
    tx, ty, cm, cn, parts = t["rows"], t["columns"], t["cluster_m"], t["cluster_n"], t["parts"]
    persistent = t["persistent"]
    # X are the rows of the kernel's tiles: M, or with `swap` N.
    ex, ey = np.where(swap, p.n, p.m), np.where(swap, p.m, p.n)
    k_in_x, k_in_y = np.where(swap, p.k_in_b, p.k_in_a), np.where(swap, p.k_in_a, p.k_in_b)
    across, along = _ceil_div(ex, tx), _ceil_div(ey, ty)
    size = cm * cn * split
    clusters = _ceil_div(across, cm) * _ceil_div(along, cn) * parts * p.batches
    blocks = clusters * size
    usable = np.maximum(1, (_USABLE[size] * p.processors).astype(np.int64))
    places = np.maximum(1, usable * b // size)
    waves = _ceil_div(clusters, places)
    steps = _ceil_div(_ceil_div(p.k, _STEP // 2 * parts), split)
    even = blocks / usable
    several = (persistent == 0) & (b > 1)
    fit = several & (even <= b)
    least = np.maximum(1, np.ceil(even))
    rounds = np.where(fit, least, np.where(several, even, waves))
    uneven = np.where(fit, np.minimum(b, least + 1) - least, 0)
    wide_x = np.where(k_in_x, 1, 64 / _row_width(tx))
    wide_y = np.where(k_in_y, 1, 64 / _row_width(ty))
    x, y = np.minimum(tx, ex), np.minimum(ty, ey)
    arrived_x, arrived_y = x * wide_x * _STEP, y * wide_y * _STEP
    empty_x, empty_y = across * tx - ex, along * ty - ey
    one_x, one_y = across == 1, along == 1
    edge = np.where(one_x | (k_in_x == 0), 0, empty_x) + np.where(one_y | (k_in_y == 0), 0, empty_y)
    # Of few rows, each block of a cluster loads its share of those that there are not.
    empty = np.where(one_x, empty_x * np.minimum(cn, 2) / cn, 0)
    empty = empty + np.where(one_y, empty_y * np.minimum(cm, 2) / cm, 0)
    own = (x / cn + y / cm) * _STEP
    shared = np.where(cn > 1, arrived_x, 0) + np.where(cm > 1, arrived_y, 0)
    crooked_x = 2 * np.where(k_in_x, p.k, ex) % _STEP != 0
    crooked_y = 2 * np.where(k_in_y, p.k, ey) % _STEP != 0
    overlapped = (t["pingpong"] == 1) | (t["deferred"] == 1) | (b > 1)
    short = np.minimum(p.m, p.n)
    log2 = np.log2
    again = p.batches * 2 * p.k * ex * log2(np.maximum(1, along / cn))
    again = again + p.batches * 2 * p.k * ey * log2(np.maximum(1, across / cm))
    zero = np.zeros(len(tx))
    return Terms(
        rounds=rounds,
        uneven=uneven,
        fuller=least / even,
        idle=waves * places / clusters,
        later=several & ~fit,
        steps=steps,
        mma=tx * np.maximum(ty, 32) / 32,
        from_l2=own,
        loaded=arrived_x + arrived_y,
        turned=np.where(k_in_x, 0, arrived_x) + np.where(k_in_y, 0, arrived_y),
        shared=shared,
        empty=empty,
        edge=edge,
        crooked=(crooked_x * x + crooked_y * y) * _STEP,
        blocks=blocks,
        used=np.minimum(blocks, usable),
        alone=np.where(size > 1, 0, 1 - np.clip(blocks / usable, 0.5, 1)),
        flight=np.minimum(blocks, usable * b) * t["stages"] * own / 1e6,
        once=zero + p.batches * 2 * ((p.m + p.n) * p.k + p.m * p.n) / 1e6,
        partial=np.where(parts > 1, 4 * parts * p.m * p.n / 1e6, 0),
        result=zero + p.batches * 2 * p.m * p.n / 1e6,
        again=again / 1e6,
        last=np.where(short <= _FEW, waves * places / clusters - 1, 0),
        tile=tx * ty,
        overlapped=overlapped,
        narrow=64 / _row_width(ty) - 1,
        turns=(waves > 1) & (t["pingpong"] == 1),
        one_consumer=(t["consumers"] == 1) | ((t["pingpong"] == 1) & (waves < 2)),
        persistent=persistent,
        parts=parts,
        split=split,
        blocks_per_sm=b,
        cluster_m=cm,
        cluster_n=cn,
        by_warps=t["by_warps"],
        promotion=t["promotion"],
    )


def physical_time(f: Terms, q: Mapping[str, float]) -> Any:
    """Microseconds by the terms alone, with the fitted numbers `q`.

    The main part is a smooth maximum of what may bound a kernel. An H200's clock, in cycles of a
    microsecond, is one of the numbers.
    """
    clock, p = q["clock"], q["sharpness"]
    tiles = f.rounds + f.uneven * q["uneven"] + f.later * q["later"]
    cycles = tiles * f.steps / clock
    loading = cycles * (1 - q["alone"] * f.alone)
    is_split = 1 - f.persistent
    mma = cycles * f.mma * (1 + (q["one_consumer"] - 1) * f.one_consumer)
    arriving = f.loaded + (q["turned"] - 1) * f.turned + q["crooked"] * f.crooked
    for count in (2, 4, 8):
        by_m, by_n = f.cluster_m == count, f.cluster_n == count
        more = q[f"split_by_{count}"] * is_split * by_m
        more = more + f.persistent * (q[f"along_n_{count}"] * by_n + q[f"along_m_{count}"] * by_m)
        arriving = arriving + f.shared * more
    arriving = loading * arriving / q["arriving"] + q["edge"] * f.edge * f.steps / clock
    own = loading * f.from_l2 / q["from_l2"]
    everyone = f.blocks * f.steps
    l2 = everyone * f.from_l2 / 1e6 / q["l2"] + everyone * f.empty * q["empty"] / clock
    speed = q["memory"] * (1 + (q["promotion"] - 1) * (f.promotion == 128))
    in_flight = speed / np.sqrt(1 + (speed * q["latency"] / f.flight) ** 2)
    each = f.used * q["of_each"]
    speed = (in_flight**-8 + each**-8) ** -0.125
    memory = (f.once + q["again"] * f.again + 0.3 * f.partial) / speed * (1 + q["last"] * f.last)
    main = (mma**p + own**p + arriving**p + l2**p + memory**p) ** (1 / p)
    ends = f.overlapped + (1 - f.overlapped) * tiles
    tile = f.tile / clock
    stored = tile * q["stored"] * ends * (1 + f.narrow * q["narrow"])
    stored = stored * (1 + (q["by_warps"] - 1) * f.by_warps) * (1 + q["partial"] * (f.parts > 1))
    summed = tile * (q["summed"] * ends + q["exchanged"] * (f.split > 1))
    begin = q["begin"] + q["begin_persistent"] * f.persistent - q["room"] * (f.blocks_per_sm > 1)
    begin = begin + q["split"] * (f.split - 1) * is_split + q["block"] * np.minimum(f.blocks, 528)
    begin = begin + q["cluster"] * np.log2(f.cluster_m * f.cluster_n * f.split)
    adding = (f.parts > 1) * (q["adding"] + (f.partial + f.result) / q["added"])
    return begin + main + np.where(f.persistent == 1, stored, summed) + adding


def inputs(
    table: Mapping[str, Any], p: Products, f: Terms, time: Any, q: Mapping[str, float]
) -> Any:
    """The networks of `Correction` see each configuration as a row of numbers about as large as 1,
    mostly logarithms of extents and of the parts of the `physical_time`.
    """
    t, zero = table, np.zeros(len(table["rows"]))
    swap = t["swap"] == 1
    ex, ey = np.where(swap, p.n, p.m), np.where(swap, p.m, p.n)
    k_in_x, k_in_y = np.where(swap, p.k_in_b, p.k_in_a), np.where(swap, p.k_in_a, p.k_in_b)
    tx, ty, cm, cn = t["rows"], t["columns"], t["cluster_m"], t["cluster_n"]
    across, along = _ceil_div(ex, tx), _ceil_div(ey, ty)
    log2 = np.log2
    is_split = 1 - f.persistent
    tall, wide, by_m, by_n = log2(tx / 64), log2(ty / 64), log2(cm), log2(cn)
    tiles_m, tiles_n = log2(np.maximum(across / cm, 1)), log2(np.maximum(along / cn, 1))
    full = f.blocks / p.processors
    cycles = (f.rounds + f.uneven / 2) * f.steps / q["clock"] / time
    shares = (
        f.once / q["memory"] / time,
        cycles * f.mma,
        cycles * f.from_l2 / q["from_l2"],
        cycles * f.loaded / q["arriving"],
        f.blocks * f.steps * f.from_l2 / 1e6 / q["l2"] / time,
    )
    return np.stack(
        [
            zero + x
            for x in (
                f.persistent,
                f.parts > 1,
                is_split * (f.parts > 1),
                log2(f.parts),
                *(tall, wide, tall * is_split, wide * is_split),
                *(by_m, by_n, cm == 2, cn == 2, is_split * by_m, is_split * (cm == 2)),
                tx == 64 * t["consumers"],
                t["pingpong"],
                t["deferred"] * (f.rounds > 1),
                t["by_warps"],
                *(log2(f.split), f.split == 3, log2(f.blocks_per_sm)),
                log2(f.steps) / 4,
                *(log2(np.maximum(f.rounds, 1)), f.rounds == 1),
                *(np.minimum(full, 1), log2(full) / 2),
                *(log2(across) / 3, log2(along) / 3, tiles_m / 3, tiles_n / 3),
                (tiles_m - tiles_n) / 3,
                *(k_in_x, k_in_y, k_in_y * is_split),
                log2(time) / 3,
                *(log2(np.maximum(share, 1e-3)) for share in shares),
                log2(np.maximum(f.flight, 1e-3)),
                f.promotion == 128,
                *(f.empty > 0, log2(1 + f.empty) / 5, log2(1 + f.edge) / 5),
                *(log2(ex) / 4, log2(ey) / 4),
                t["stages"] / 10,
                *(f.narrow, ty % 64 == 0, ty % 32 == 0),
                *((cm > 1) & (ex < ey), (cn > 1) & (ex < ey)),
                # N is contiguous in what a pair shares: slower for a long K than each fact tells.
                ((cm == 2) & (k_in_y == 0)) * log2(f.steps) / 4,
                ((cn == 2) & (k_in_x == 0)) * log2(f.steps) / 4,
                swap,
                swap * f.persistent,
                log2(0.01 + f.partial) / 4,
                *((f.parts > 1) * x for x in (by_m, by_n, tall - wide)),
                *(log2(f.fuller) / 2, log2(f.idle) / 2, f.uneven, f.later),
                log2(t["stages"] * (tx + ty) * f.blocks_per_sm) / 2,
                log2(t["stages"]) / 3,
                log2(f.once),
                f.once / q["memory"] / time,
                *(log2(p.m) / 4, log2(p.n) / 4, log2(p.k) / 4, log2(p.batches) / 4),
                *(across == 1, along == 1),
                *(cm == 4, cn == 4, cm == 8, cn == 8),
                *(f.split == 2, f.split == 4, f.blocks_per_sm == 2, f.blocks_per_sm == 3),
                *(tx == 128, tx == 192, ty % 64 == 16),
                (across % cm != 0) | (along % cn != 0),
                *(across * tx / ex - 1, along * ty / ey - 1),
            )
        ],
        axis=1,
    )


class Correction(NamedTuple):
    """Neural networks that began differently, all with the same inputs: these minus `means`,
    divided by `scales`, through layers of weights and biases, with x / (1 + exp(-x)) between them.
    The one output of each is a natural logarithm.
    """

    means: Any
    scales: Any
    networks: tuple[tuple[tuple[Any, Any], ...], ...]

    @classmethod
    def read(cls, path: Path) -> Correction:
        """Read what `write` has written."""
        with np.load(path) as file:
            found = {name: x.astype(np.float64) for name, x in file.items()}
        layers = range((len(found) - 2) // 2)
        networks = tuple(
            tuple((found[f"weights{i}"][n], found[f"biases{i}"][n]) for i in layers)
            for n in range(len(found["biases0"]))
        )
        return cls(found["means"], found["scales"], networks)

    def write(self, path: Path) -> None:
        """Write the numbers as an archive of NumPy, the networks' as 16-bit floats: of each layer
        the `weights` (networks, inputs, outputs) and the `biases` (networks, outputs).
        """
        arrays = {"means": self.means, "scales": self.scales}
        for i, layers in enumerate(zip(*self.networks, strict=True)):
            for name, of_each in zip(("weights", "biases"), zip(*layers, strict=True), strict=True):
                arrays[f"{name}{i}"] = np.stack(of_each).astype(np.float16)
        np.savez_compressed(path, **arrays)

    def factor(self, rows: Any) -> Any:
        """The factor on the physical time of each row of inputs: the mean of the networks, and more
        where they disagree, since there nothing like it was measured.
        """
        first = (rows - self.means) / self.scales
        found = []
        for layers in self.networks:
            x = first
            for weights, biases in layers[:-1]:
                x = x @ weights + biases
                x = x / (1 + np.exp(-x))
            weights, biases = layers[-1]
            found.append((x @ weights + biases)[:, 0])
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        return np.exp(np.clip(mean, *_MOST_CORRECTED) + _CAUTION * spread)


def modelled_time(table: Mapping[str, Any], p: Products) -> Any:
    """Microseconds of the product by each configuration of a table."""
    f = terms(table, p)
    time = physical_time(f, PHYSICAL)
    near = np.flatnonzero(time < _NEAR * time.min())
    if len(near) < len(time):
        table = {name: column[near] for name, column in table.items()}
        f = Terms(*(x[near] for x in f))
        p = Products(*(x[near] if isinstance(x, np.ndarray) else x for x in p))
    time[near] *= _correction().factor(inputs(table, p, f, time[near], PHYSICAL))
    time[near] *= np.where(gpcs_have_parts(table, p.m, p.n, p.k), _OF_ONE_GPC, 1)
    return time


@functools.cache
def _correction() -> Correction:
    return Correction.read(CORRECTION)


CORRECTION = Path(__file__).with_name("model_correction.npz")
_NEAR = 1.4  # times the shortest physical time: others are not corrected
# Of the time by the timings of the fit, which are of other rasters (0.96 to 0.99, 0.96 in long rows
# of calls): once it has timings of this one, nothing is left to multiply by.
_OF_ONE_GPC = 0.96
_LONG_PART = 4096  # elements of K
_CAUTION = 0.5  # standard deviations of the networks
_MOST_CORRECTED = -0.3, 0.5  # natural logarithms: products unlike all that was measured
