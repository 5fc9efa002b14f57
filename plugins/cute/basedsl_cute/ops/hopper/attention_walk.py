"""The order in which blocks of attention on Hopper compute tiles of queries."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.ops.flash.variant import Place
from basedsl_cute.ops.hopper.attention_config import ROWS

# Tasks that the producer leaves for consumers, of up to two stages of queries: those of which warps
# still write results, and the next.
NOTES = 4


class Walk:
    """The tasks of blocks, each a tile of queries of a head of a batch, in sections of `swizzle`
    heads, whose keys and values are in the L2 cache together. The tiles of a section go from the
    last to the first, since with a causal mask the last have most keys, and those of the section
    before the other way, so that blocks that stay get as much work each. A single section, and
    sections `by_head`, go backwards over the blocks in every second round instead.
    """

    def __init__(self, variant, sequence, extras, shape, swizzle, cfg):
        self.variant, self.sequence, self.extras = variant, sequence, extras
        (self.rows, self.keys), self.stages = cfg.tile, cfg.stages
        self.by_head, self.from_end = cfg.by_head, cfg.from_end
        self.swizzle = swizzle
        self.heads, self.batches = shape[2], shape[3]
        self.tiles = cute.ceil_div(sequence.queries, self.rows)
        self.lead = self.tiles * self.rows - sequence.queries if cfg.from_end else 0
        self.total = cute.Int32(self.tiles * self.heads * self.batches)

    def sequence_of(self, batch):
        """The sequence of a batch."""
        return self.sequence

    def place(self, batch):
        """The place of scores of a batch."""
        return Place(self.variant, self.sequence_of(batch), batch, *self.extras)

    def row_of(self, tile):
        """The first query of a tile, which lies before the sequence if it is negative."""
        return tile * self.rows - self.lead

    def area(self, row, head, sequence):
        """The heads and the queries of the task from query `row` on, each (first, last)."""
        end = cute.min(row + self.rows, sequence.queries)
        return (head, head), (cute.max(row, 0) if self.from_end else row, end - 1)

    def rows_of_group(self, row, group):
        """The queries of warpgroup `group`, counted from 1, of the task from `row` on, (first,
        last): they may lie outside of the sequence.
        """
        first = row + (group - 1) * ROWS
        return first, first + (ROWS - 1)

    def is_outside(self, rows):
        """True if none of the rows (first, last) is a query."""
        return (rows[0] >= self.sequence.queries) | (rows[1] < 0)

    def last_of_group(self, task, group):
        """The last tile of keys that a query of the warpgroup sees, of a task as it is left for
        consumers (`write_note`), but not so far from its last one that the tiles between need the
        stage of one more.
        """
        row, _, batch, low, number = task
        _, end = self.place(batch).keys_of(*self.rows_of_group(row, group))
        seen = cute.min(cute.ceil_div(end, self.keys) - 1, number)
        return cute.max(cute.max(seen, low), number - (self.stages - 1))

    def first(self, work):
        """The first task of the block with number `work`."""
        return work

    def following(self, work):
        """The task of this block after `work`."""
        return work + arch.grid_dim()[0]

    def has(self, work):
        """True if a task is one of this block."""
        return work < self.total

    def at(self, work):
        """The tile, head and batch of a task."""
        resident, all_heads = arch.grid_dim()[0], self.heads * self.batches
        turn = work // resident
        turned = cute.min(turn * (2 * resident) + resident, self.total + turn * resident) - 1 - work
        work = cute.where(self.turns_back(turn, all_heads), turned, work)
        each = self.swizzle * self.tiles
        section = work // each
        at = work - section * each
        width = cute.min(self.swizzle, all_heads - section * self.swizzle)
        number = section * self.swizzle + at % width
        tile = at // width
        if self.by_head:
            tile = self.tiles - 1 - tile
        else:
            descends = (cute.ceil_div(all_heads, self.swizzle) - section) % 2 == 1
            tile = cute.where(descends, self.tiles - 1 - tile, tile)
        return tile, number % self.heads, number // self.heads

    def turns_back(self, turn, all_heads):
        """True if the tasks of a round go backwards over the blocks."""
        is_odd = turn % 2 == 1
        return is_odd if self.by_head else is_odd & (self.swizzle >= all_heads)

    def task(self, work):
        """The tile, head and batch of a task, and its tiles of keys: the first one, and the last,
        which it begins with, as far as windows tell. It has one in any case.
        """
        tile, head, batch = self.at(work)
        place = self.place(batch)
        area = self.area(self.row_of(tile), head, place.sequence)
        begin, end = place.keys_of(*area[1])
        low = begin // self.keys
        return tile, head, batch, low, cute.max(cute.ceil_div(end, self.keys) - 1, low)


@cute.jit
def write_note(notes, number, task: cute.Constexpr):
    """Leave a task, as `Walk.task` returns it but with the first query for the tile, and what else
    they need, for the consumers: its divisions take a thousand cycles, which a producer has. They
    read it behind the barrier of the queries.
    """
    if arch.lane_idx() == 0:
        for i, x in enumerate(task):
            notes[i, number % NOTES] = cute.Int32(x)
    arch.sync_warp()


class Steps:
    """Words that the producer leaves with tiles of keys, where a mask of the user's chooses them,
    each about the tile behind: its number, if the queries see all of it, and if there is one.
    Consumers, whose registers and time are scarcer, load it behind the barrier of the keys. A stage
    has two places: consumers may still load from one while the producer writes the other, ahead of
    its wait for the stage.
    """

    def __init__(self, smem, stages):
        self.words = smem.allocate_tensor(cute.Int32, cute.make_layout((2, stages)), 16)

    def after(self, number, looked, place, area, low, keys):
        """The word about the tile behind tile `number`, of `keys` keys, of tiles down to `low`, and
        what was looked at (see `Place.next_tile`).
        """
        number, whole, looked = place.next_tile(number - 1, looked, low, area, keys)
        return number * 4 + cute.where(whole, 2, 0) + cute.where(number >= low, 1, 0), looked

    @cute.jit
    def write(self, state, word):
        """Leave a word with the stage at `state` of the producer."""
        if arch.lane_idx() == 0:
            # The producer's phases are the opposite of the consumers'.
            self.words[state.phase ^ 1, state.index] = word
        arch.sync_warp()

    def load(self, state):
        """The word of the stage at `state` of a consumer, which may be used later."""
        return load_for_warp(self.words[state.phase, None], state.index)


def read_note(notes, number, size=5):
    """The first numbers of what the producer left as number `number` of the block."""
    own = notes[None, number]
    return [arch.make_warp_uniform(load_for_warp(own, i)) for i in range(size)]


def load_for_warp(words, i):
    """Word `i` in shared memory, which lane 0 alone loads: `arch.make_warp_uniform` gives it to the
    others. The lane that `elect_one` chooses, in practice the same one, arrives for the warp when a
    stage has been read; compute-sanitizer's racecheck takes its arrival for no other lane's.
    """
    if not current_target().is_gpu:
        return words[i]
    # As a branch it would end the basic block, to whose beginning ptxas moves waits for wgmma.
    return arch.inline_ptx(
        "{ .reg .pred p; setp.eq.s32 p, $2, 0; mov.b32 $0, 0; @p ld.shared.b32 $0, [$1]; }",
        [words.iterator + cute.crd2idx(i, words.layout), arch.thread_idx()[0] % arch.WARP_SIZE],
        cute.Int32,
    )
