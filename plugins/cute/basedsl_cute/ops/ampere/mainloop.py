"""Parts of GEMM kernels that multiply by mma.sync: the tiled MMA, fragment loads, the epilogue.

The docstring of `ops.ampere.gemm` describes a block's work and introduces the names used here.
"""

from __future__ import annotations

import math

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import mma_sync
from basedsl_cute.nvgpu import CopyUniversalOp, warp
from basedsl_cute.ops.gemm.operands import OutputTile
from basedsl_cute.utils import hopper_helpers as sm90

VECTOR = 8  # columns of C that a thread writes at once


def instruction(dtype, acc_dtype=None):
    """The mma.sync operation for elements of a type; DSLTypeError where there is none."""
    if dtype in (cute.Float16, cute.BFloat16):
        return warp.MmaF16BF16Op(dtype, acc_dtype or cute.Float32, (16, 8, 16))
    if dtype is cute.TFloat32:
        return warp.MmaTF32Op()
    if dtype in (cute.Int8, cute.Uint8):
        return warp.MmaI8Op(dtype)
    if dtype is cute.Float64:
        is_tall = mma_sync("16x8x8", "f64", "f64").is_met_by(current_target())
        return warp.MmaF64Op((16, 8, 8) if is_tall else (8, 8, 4))
    if dtype in (cute.Float8E4M3FN, cute.Float8E5M2):
        return warp.MmaFP8Op(dtype, acc_dtype or cute.Float32, (16, 8, 32))
    raise DSLTypeError(
        f"mma.sync does not multiply {dtype.__name__} in this kernel",
        hint="Float16, BFloat16, TFloat32, Float64, both 8-bit floats, Int8 and Uint8 it does",
    )


def check_tile(cfg, op):
    """Raise DSLTypeError for a tile that the warps do not divide, or fewer than two stages."""
    (tile_m, tile_n, tile_k), (wm, wn) = cfg.tile, cfg.warps
    m, n, k = op.shape_mnk
    columns = 2 * n if m == 16 else 4 * n  # that threads exchange, see `WarpEpilogue`
    if tile_m % (m * wm) or tile_n % (columns * wn) or tile_k % (2 * k) or cfg.stages < 2:
        raise DSLTypeError(
            f"{wm} x {wn} warps cannot share a tile {cfg.tile} in {cfg.stages} stages",
            hint=f"M must be a multiple of {m * wm}, N of {columns * wn}, K of {2 * k}, and stages "
            "at least 2",
        )


def make_mma(op, cfg):
    """The tiled MMA of the operation over warps, interleaved along rows and columns of the tile."""
    m, n, k = op.shape_mnk
    (tile_m, tile_n, _), (wm, wn) = cfg.tile, cfg.warps
    own = columns_of_a_turn(cfg)
    rows = cute.make_layout((m, wm, tile_m // (m * wm)), stride=(1, m, m * wm))
    columns = cute.make_layout(
        (n, wn, own // n, tile_n // (own * wn)), stride=(1, own, n, own * wn)
    )
    return cute.make_tiled_mma(op, (wm, wn, 1), (rows, columns, k))


def columns_of_a_turn(cfg):
    """The number of consecutive columns of a warp: 32, or 16 where the tile has not that many."""
    return math.gcd(4 * VECTOR, cfg.tile[1] // cfg.warps[1])


def for_fragments(layout, dtype):
    """The layout of an operand's stages, with the swizzle that loads of fragments want.

    Of 64-bit elements, 16 threads load 4 x 4 at once: in lines of 128 bytes, runs of 32 bytes that
    are to be in different banks. The swizzle of TMA and ldmatrix permutes runs of 16.
    """
    if dtype.width != 64:
        return layout
    return cute.make_composed_layout(cute.make_swizzle(2, 2, 2), layout.offset, layout.outer)


class FragmentLoader:
    """A thread's loads of its fragments of an operand from shared memory: ldmatrix if possible."""

    def __init__(self, make, major, mma, staged, fragment, thread):
        dtype = staged.element_type
        by_row = major is sm90.LayoutEnum.ROW_MAJOR
        # ldmatrix moves words of 4 bytes, and turns elements of 16 bits only.
        suits = dtype.width == 16 or (by_row and dtype.width < 64)
        op = warp.LdMatrix8x8x16bOp(not by_row, 4) if suits else CopyUniversalOp()
        bits = None if suits else dtype.width
        self.tiled = make(cute.make_copy_atom(op, dtype, num_bits_per_copy=bits), mma)
        own = self.tiled.get_slice(thread)
        self.source = own.partition_S(staged)
        self.target = own.retile(fragment)

    def load(self, k, stage, n=None):
        """Load the fragments of block `k` of K, all or those of one load along the other mode."""
        cute.copy(self.tiled, self.source[None, n, k, stage], self.target[None, n, k])


class WarpEpilogue:
    """The store of a warp's part of a tile, in vectors of consecutive columns from registers.

    The instruction leaves 2 of each 8 columns of a row in each of four neighbouring threads. These
    threads exchange four such groups, so that each has one of them whole: of 32 columns of a row,
    or where a warp has not that many, of 16 columns of a row and of the row 8 below. (The
    instruction of 8 rows has 32 columns.)
    """

    def __init__(self, c, operands, op, epilogue, cfg, thread):
        wm, wn = cfg.warps
        self.results, self.epilogue = OutputTile(c, operands), epilogue
        columns = columns_of_a_turn(cfg)
        self.tile = (op.shape_mnk[0], columns)
        self.turns = (cfg.tile[0] // (self.tile[0] * wm), cfg.tile[1] // (columns * wn))
        number, self.lane = thread // arch.WARP_SIZE, thread % arch.WARP_SIZE
        self.warp = (number % wm, number // wm)
        self.warps = cfg.warps
        self.is_full = cfg.is_full
        self.across = columns // VECTOR
        self.halves = op.shape_mnk[0] // 8  # of 8 rows of an instruction
        self.pieces = self.halves * self.across // 4
        threads = cute.make_layout(
            ((8, 4 // self.across), self.across), stride=((4, self.across), 1)
        )
        atom = cute.make_copy_atom(CopyUniversalOp(), op.dtypes[0])
        values = cute.make_layout((1, VECTOR))
        self.own = cute.make_tiled_copy_tv(atom, threads, values).get_slice(self.lane)

    def store(self, acc, where):
        """Apply the epilogue to the accumulator, and write the tile at `where` (M, N, L)."""
        m, n, batch = where
        results = self.results.of_batch(batch)
        dtype = results.c.element_type
        values = acc
        if self.epilogue is None and dtype.width == 16:  # exchange pairs: half as many
            converted = cute.make_rmem_tensor(acc.layout, dtype)
            converted.store(acc.load().to(dtype))
            values = cute.recast_tensor(converted, cute.Int32)
        (rows, columns), (wm, wn) = self.turns, self.warps
        first = (m * rows * wm + self.warp[0], n * columns * wn + self.warp[1])
        for i in range(rows):
            pieces = [(j, piece) for j in range(columns) for piece in range(self.pieces)]
            vectors = [
                self.vector(values, i, *piece) for piece in pieces
            ]  # shuffles stand before any branch
            for (j, piece), found in zip(pieces, vectors, strict=True):
                sums = found if values is acc else cute.recast_tensor(found, dtype)
                at = (first[0] + i * wm, first[1] + j * wn)
                parts = results.each(lambda x, at=at: self.part(x, at))
                part = parts.each(lambda x, piece=piece: x[None, piece, 0])
                part.put(sums, self.epilogue, self.is_full)

    def vector(self, values, i, j, piece):
        """The consecutive columns of a row that this thread writes of a piece, after the exchange.
        `values` are accumulators, or pairs of converted results.
        """
        each = cute.size(values, mode=[0]) // self.halves  # of 2 columns
        units = []
        for unit in range(4):
            half, atom = (piece, unit) if self.across == 4 else divmod(unit, 2)
            units.append([values[each * half + k, i, j * self.across + atom] for k in range(each)])
        found = cute.make_rmem_tensor((4 * each,), values.element_type)
        for k, x in enumerate(exchanged(units, self.lane)):
            found[k] = x
        return found

    def part(self, x, at):
        """This thread's part of the piece `at` of a matrix."""
        return self.own.partition_S(cute.local_tile(x, self.tile, at))


def exchanged(units, lane):
    """Transpose four lists of values over four neighbouring lanes: lane n gets list n of each lane,
    one after another.
    """
    for distance in (1, 2):
        is_upper = (lane & distance) != 0
        for low in (i for i in range(4) if not i & distance):
            for k in range(len(units[low])):
                a, b = units[low][k], units[low + distance][k]
                got = arch.shuffle_sync_bfly(cute.where(is_upper, a, b), distance)
                units[low][k] = cute.where(is_upper, got, a)
                units[low + distance][k] = cute.where(is_upper, b, got)
    return [x for unit in units for x in unit]
