"""The loads of attention on Hopper: tiles of whole tensors, of packed sequences and of pages.

TMA fills with zeros what lies beyond the extents of its tensor, not what lies behind a sequence. So
the rows of a packed tensor are seen as boxes of some rows, of which each ends at another row of it:
a load that begins inside of a box has its last rows beyond the extent of the box, and they become
zeros, whatever memory has behind the sequence.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.ops.flash.variant import Sequence
from basedsl_cute.ops.hopper.attention_walk import Walk


class Packing(NamedTuple):
    """The lengths of packed or paged sequences (see `ops.ampere.attention.forward`), the number of
    sequences, the most queries of one, and the rows of `q` and of `k`.
    """

    lengths: Any
    batches: Any
    longest: Any
    rows: Any
    key_rows: Any

    def sequence(self, batch):
        """The sequence number `batch`."""
        starts_q, starts_k, used, _ = self.lengths
        queries, keys = cute.Int32(self.rows), cute.Int32(self.key_rows)
        first_query = first_key = cute.Int32(0)
        if starts_q is not None:
            first_query = cute.Int32(starts_q[batch])
            queries = cute.Int32(starts_q[batch + 1]) - first_query
        if starts_k is not None:
            first_key = cute.Int32(starts_k[batch])
            keys = cute.Int32(starts_k[batch + 1]) - first_key
        if used is not None:
            keys = cute.Int32(used[batch])
        return Sequence(queries, keys, first_query, first_key)

    def query_batch(self, batch):
        """The batch of `q`, and of the result, that has the sequence."""
        return batch if self.lengths[0] is None else 0

    def place_of_keys(self, sequence, batch, key):
        """The row and the batch, or page, of `k` and `v` where a key lies."""
        _, starts_k, _, table = self.lengths
        if table is None:
            return sequence.first_key + key, batch if starts_k is None else 0
        # Boxes behind the last key are empty, on any page.
        inside = cute.max(cute.min(key, sequence.keys - 1), 0)
        return key % self.key_rows, cute.Int32(table[batch, inside // self.key_rows])


class PackedWalk(Walk):
    """The tasks of blocks where sequences have lengths of their own; those without queries are
    left out.
    """

    def __init__(self, variant, packing, extras, heads, swizzle, cfg):
        self.packing = packing
        of_longest = Sequence(cute.Int32(packing.longest), cute.Int32(0))
        shape = (None, None, heads, packing.batches)
        super().__init__(variant, of_longest, extras, shape, swizzle, cfg)

    def sequence_of(self, batch):
        return self.packing.sequence(batch)

    def first(self, work):
        return self.shown(work)

    def following(self, work):
        return self.shown(work + arch.grid_dim()[0])

    @cute.jit
    def shown(self, work):
        """The task, or the next one of the block that has a query."""
        while work < self.total and self.is_empty(work):
            work = work + arch.grid_dim()[0]
        return work

    def is_empty(self, work):
        """True for a task behind the last query of its sequence."""
        tile, _, batch = self.at(work)
        return tile * self.rows >= self.sequence_of(batch).queries


def boxes_of(x, rows):
    """The tensor (rows, head, heads, batches) as (rows of a box, head, heads, ends, batches): box
    `e` has the rows before row e.
    """
    shape, stride = x.shape, x.stride
    start = (x.iterator - rows * stride[0]).align(16)
    return cute.make_tensor(
        start,
        cute.make_layout(
            (rows, shape[1], shape[2], shape[0] + 1, shape[3]),
            stride=(stride[0], stride[1], stride[2], stride[0], stride[3]),
        ),
    )


def box_width(cfg, head):
    """The elements of a head in one load: all, or what lies together in shared memory."""
    return head if cfg.box == cfg.tile[1] else math.gcd(head, 64)


def box_at(x, mode, rows, first, count, head, batch):
    """The tile of `rows` rows, which are `mode` of `x`, from `first` on, of which only `count` are
    not zeros.
    """
    count = cute.max(cute.min(count, rows), 0)
    behind = (0, rows - count) if mode else (rows - count, 0)
    return cute.domain_offset(behind, x[None, None, head, first + count, batch])


def tma_tile(atom, x, staged, tile, at, head, batch):
    """The stages of a tile in shared memory and its tiles in global memory, as TMA copies them."""
    return partition(atom, staged, cute.local_tile(x[None, None, head, batch], tile, at))


def partition(atom, staged, tiles):
    """Shared and global memory as TMA copies them."""
    return cpasync.tma_partition(
        atom,
        0,
        cute.make_layout(1),
        cute.group_modes(staged, 0, 2),
        cute.group_modes(tiles, 0, 2),
    )


class TileLoads:
    """The loads of a task from tensors (rows, head, heads, batches)."""

    def __init__(self, sides, heads, cfg, row, batches, head, key_head):
        (load_q, tma_q, sq), (load_k, tma_k, sk), (load_v, tma_v, sv) = sides
        (m, n), (head_k, head_v), batch = cfg.tile, heads, batches
        self.cfg = cfg
        tma_q = cute.domain_offset((row, 0, 0, 0), tma_q)
        self.of_queries = (
            load_q,
            *tma_tile(load_q, tma_q, sq, (m, head_k), (0, 0), head, batch),
        )
        self.of_keys = (
            load_k,
            *tma_tile(load_k, tma_k, sk, (n, head_k), (None, 0), key_head, batch),
        )
        if cfg.in_blocks:
            self.size = n * head_v
            self.blocks = tma_v[None, None, key_head, batch].iterator
            self.staged = cute.recast_ptr(sv.iterator, cute.make_swizzle(0, 4, 3), sv.element_type)
        else:
            self.of_values = (
                load_v,
                *tma_tile(load_v, tma_v, sv, (head_v, n), (0, None), key_head, batch),
            )

    def queries(self, stage):
        """Start to load the queries into a stage."""
        atom, to, source = self.of_queries
        cute.copy(atom, source, to[None, stage.index], tma_bar_ptr=stage.barrier)

    def keys(self, number, stage):
        """Start to load a tile of keys into a stage."""
        self._start(self.of_keys, number, stage)

    def values(self, number, stage):
        """Start to load a tile of values into a stage."""
        if self.cfg.in_blocks:
            bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), self.staged.dtype)
            vector = cute.make_layout(self.size)
            source, to = (
                cute.make_tensor((x + i * self.size).align(16), vector)
                for x, i in ((self.blocks, number), (self.staged, stage.index))
            )
            with arch.elect_one():
                cute.copy(bulk, source, to, mbar_ptr=stage.barrier)
        else:
            self._start(self.of_values, number, stage)

    def _start(self, side, number, stage):
        atom, to, source = side
        cute.copy(atom, source[None, number], to[None, stage.index], tma_bar_ptr=stage.barrier)


class BoxLoads:
    """The loads of a task of a packed or paged sequence, from boxes of rows."""

    def __init__(self, sides, heads, cfg, row, batch, head, key_head, packing):
        self.sides, self.heads, self.cfg, self.packing = sides, heads, cfg, packing
        self.row, self.batch, self.head, self.key_head = row, batch, head, key_head
        self.sequence = packing.sequence(batch)

    def queries(self, stage):
        """Start to load the queries into a stage."""
        atom, x, staged = self.sides[0]
        rows, row, sequence = self.cfg.tile[0], self.row, self.sequence
        at = self.packing.query_batch(self.batch)
        first = sequence.first_query + row
        box = box_at(x, 0, rows, first, sequence.queries - row, self.head, at)
        tile = cute.local_tile(box, (rows, self.heads[0]), (0, 0))
        self._start(atom, tile, staged[None, None, stage.index], stage)

    def keys(self, number, stage):
        """Start to load a tile of keys into a stage."""
        self._boxes(self.sides[1], self.heads[0], 0, number, stage)

    def values(self, number, stage):
        """Start to load a tile of values into a stage."""
        self._boxes(self.sides[2], self.heads[1], 1, number, stage)

    @cute.jit
    def _boxes(
        self, side: cute.Constexpr, head: cute.Constexpr, mode: cute.Constexpr, number, stage
    ):
        atom, x, staged = side
        rows, keys = self.cfg.box, self.cfg.tile[1]
        width, lane = box_width(self.cfg, head), arch.lane_idx()
        # Each lane looks one box up, so that the table is waited for once.
        own = number * keys + cute.min(lane, keys // rows - 1) * rows
        places = self.packing.place_of_keys(self.sequence, self.batch, own)
        for i in cute.range(keys // rows, unroll=1):
            first, batch = (
                arch.make_warp_uniform(arch.shuffle_sync(cute.Int32(x), i)) for x in places
            )
            count = self.sequence.keys - (number * keys + i * rows)
            box = box_at(x, mode, rows, first, count, self.key_head, batch)
            for j in cute.range_constexpr(head // width):
                if cute.const_expr(mode == 1):
                    tile, at, source = (width, rows), (j, i), (j, 0)
                else:
                    tile, at, source = (rows, width), (i, j), (0, j)
                to = cute.local_tile(staged[None, None, stage.index], tile, at)
                self._start(atom, cute.local_tile(box, tile, source), to, stage)

    def _start(self, atom, tile, to, stage):
        to, source = partition(atom, to, tile)
        cute.copy(atom, source, to, tma_bar_ptr=stage.barrier)
