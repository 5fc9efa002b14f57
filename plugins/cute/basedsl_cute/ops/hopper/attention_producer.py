"""The producer warp of attention on Hopper: it finds the tiles of a task, and loads them."""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.hopper.attention_rows import BoxLoads, TileLoads
from basedsl_cute.ops.hopper.attention_walk import write_note


@cute.jit
def producer(
    pipes, sides, walk, work, group, packing, left, heads: cute.Constexpr, cfg: cute.Constexpr
):
    """Load the queries of each task, and keys and values from its last tile to its first."""
    notes, steps = left
    at_q, at_k, at_v = [pipe.make_participants()[0] for pipe in pipes]
    while walk.has(work):
        tile, head, batch, low, number, *ending = walk.task(work)
        row = walk.row_of(tile)
        place = walk.place(batch)
        area = walk.area(row, head, place.sequence)
        note: tuple = (row, head, batch, low, number, *ending)
        word: Any = None
        looked: Any = None
        if cute.const_expr(steps is not None):
            looked = place.look_at_tiles(number, low, area, cfg.tile[1])
            number, whole, looked = place.next_tile(number, looked, low, area, cfg.tile[1])
            number = cute.max(number, low)
            note = (row, head, batch, low, number, whole)
            word, looked = steps.after(number, looked, place, area, low, cfg.tile[1])
            steps.write(at_k.state, word)
        write_note(notes, at_q.state.count, note)
        where = (sides, heads, cfg, row, batch, head, head // group)
        loads = TileLoads(*where) if packing is None else BoxLoads(*where, packing)
        loads.keys(number, at_k.acquire_and_advance())
        loads.queries(at_q.acquire_and_advance())
        if cute.const_expr(cfg.early):
            arch.griddepcontrol_wait()  # for the values alone; at once but for the first task
        more = cute.Boolean(True)
        while more:
            following = number - 1
            if cute.const_expr(steps is not None):
                more, following = word & 1 != 0, word >> 2
                # Ahead of the wait for the values, which takes longer.
                word, looked = steps.after(following, looked, place, area, low, cfg.tile[1])
            loads.values(number, at_v.acquire_and_advance())
            number = following
            if cute.const_expr(steps is None):
                more = number >= low
            if more:
                if cute.const_expr(steps is not None):
                    steps.write(at_k.state, word)
                loads.keys(number, at_k.acquire_and_advance())
        work = walk.following(work)
    for at in (at_q, at_k, at_v):
        at.tail()
