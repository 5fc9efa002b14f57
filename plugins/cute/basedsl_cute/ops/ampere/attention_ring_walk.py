"""A walk over tiles of keys, by mma.sync, through a ring of stages of keys and values.

Each stage has two mbarriers: one says that all threads' copies are there, the other one that all
threads have read them. A warp waits for the copies of its tile, and before it copies the next tile
for what was read of that stage: with three stages warps may be a tile apart, where a barrier of the
block makes all of them wait for the last one at each tile, and none multiplies meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.ampere.attention_key_walk import KeyWalk


@dataclass
class RingWalk(KeyWalk):
    """A walk whose `stages` have the mbarriers that `make_barriers` made. `is_seen`, if not None,
    tells whether a row of the warp sees a key of a tile.
    """

    stages: int
    barriers: Any
    is_seen: Any

    @cute.jit
    def run(self, number, low, first_copies: cute.Constexpr):
        """Attend to tiles from `number` down to `low`, if any. The copies of queries are begun, and
        `first_copies` copy the first tile.
        """
        copy_k, copy_v = self.copies
        full, free = self.barriers, self.barriers + self.stages
        if number >= low:
            first_copies[0](number, 0)
            first_copies[1](number, 0)
        arch.cp_async_mbarrier_arrive_noinc(full)
        stage, phase, next_phase = cute.Int32(0), cute.Int32(0), cute.Int32(1)
        while number >= low:
            own = number
            number = self.before(number - 1, low)
            is_last = stage + 1 == self.stages
            after = cute.where(is_last, 0, stage + 1)
            next_phase = cute.where(is_last, next_phase ^ 1, next_phase)
            if number >= low:
                self.await_phase(free + after, next_phase)
                copy_k(number, after)
                copy_v(number, after)
                arch.cp_async_mbarrier_arrive_noinc(full + after)
            self.await_phase(full + stage, phase)
            if cute.const_expr(self.is_seen is None):
                self.attend(own, stage)
            elif self.is_seen(own):
                self.attend(own, stage)
            # Each thread for itself, not one for its warp: so racecheck knows what it read.
            arch.mbarrier_arrive(free + stage)
            phase = cute.where(is_last, phase ^ 1, phase)
            stage = after
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)

    @cute.jit
    def attend(self, number, stage):
        """Attend to tile `number`, which is in `stage`."""
        scores = self.multiply_scores(stage)
        # Here ptxas finds them beside the last products: a mask, a branch, would end these.
        largest = self.largest_of(scores)
        self.score(scores, number, lambda: self.find_again(scores, largest))
        self.add_values(scores, largest, stage)

    def await_phase(self, barrier, phase):
        """Wait until a phase of an mbarrier is complete."""
        arch.mbarrier_wait(barrier, phase)

    def find_again(self, scores, largest):
        """Find the largest of the scores that the thread has of each row again."""
        if largest is not None:
            largest.store(self.largest_of(scores).load())


@cute.jit
def make_barriers(smem, stages: cute.Constexpr, threads: cute.Constexpr):
    """Allocate and initialise the mbarriers of a ring of stages, for all threads of a block: those
    that say that stages are full, and those that say that they are free.
    """
    barriers = smem.allocate_array(cute.Int64, 2 * stages, 8)
    if arch.thread_idx()[0] == 0:
        for stage in cute.range_constexpr(stages):
            arch.mbarrier_init(barriers + stage, threads)
            arch.mbarrier_init(barriers + stages + stage, threads)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    return barriers
