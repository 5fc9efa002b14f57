"""Accesses that words are not told of: nothing is missed, and few words are told."""

from __future__ import annotations

import random

import numpy as np
import pytest

from basedsl_cute.sim import NVIDIA, Memory, RaceError, SimOptions
from basedsl_cute.sim.affine import Affine, LaneGrid, reach
from basedsl_cute.sim.machine import affine_access
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.lanes import Lanes
from basedsl_cute.sim.machine.memory import SHARED_BASE, private_segment
from basedsl_cute.sim.machine.memory_map import MemoryMap
from basedsl_cute.sim.machine.pending_access import Mesh, PendingAccess, PendingAccesses
from basedsl_cute.sim.machine.race_checker import RaceChecker
from basedsl_cute.sim.machine.state import Block, Group, SimLaunch
from basedsl_cute.sim.machine.thread_order import ThreadOrder
from basedsl_cute.sim.machine.word_history import PLAIN_READ, PLAIN_WRITE
from basedsl_cute.sim.site import Site

GRID = LaneGrid((3, 2, 4))


def pending(first: int, parts: tuple[int, ...], nbytes: int, known: object) -> PendingAccess:
    low, high = reach(GRID.extents, first, parts)
    mesh = Mesh(GRID, first, parts, low, high + nbytes)
    return PendingAccess(PLAIN_READ, 1, nbytes, 4, mesh, None, known)


@pytest.mark.parametrize("seed", range(40))
def test_lanes_that_meet_are_found(seed):
    chance = random.Random(seed)
    certain = 0
    for _ in range(60):
        parts, others = (
            tuple(chance.choice((0, 4, 8, 16, -16, 32, 64, 96)) for _ in GRID.extents)
            for _ in range(2)
        )
        groups = [object(), object()]
        one, other = (
            pending(chance.randrange(0, 256, 4), part, chance.choice((4, 8)), chance.choice(groups))
            for part in (parts, chance.choice((parts, others)))
        )
        a, b = one.places.places[:, None], other.places.places[None, :]
        meet = (a < b + other.nbytes) & (b < a + one.nbytes)
        if one.known is other.known:
            meet &= ~np.eye(GRID.lanes, dtype=np.bool_)
        kept = PendingAccesses()
        kept.add(pending(9000, parts, 4, groups[0]))
        kept.add(one)
        found = kept.conflicts(other, (PLAIN_READ,), 0)
        assert found or not meet.any()
        assert not kept.conflicts(other, (PLAIN_READ,), 1)  # those are over
        certain += not found
    assert certain


def access(verb: str) -> MemoryAccess:
    return MemoryAccess(np.dtype(np.int32), (), 4, 3, None, Site(verb, None), "i32", verb)


READ, WRITE = access("read"), access("write")
SIZE = 1024


def shared_group() -> Group:
    """The lanes of two blocks of 64 threads in lock step."""
    memory_map = MemoryMap()
    memory_map.static_size = SIZE
    memory_map.variables = [(SHARED_BASE, "tile", SIZE)]
    options = SimOptions(check_races="error", check_uninitialized="off")
    launch = SimLaunch((2, 1, 1), (64, 1, 1), memory_map, 0, Memory(), {}, options, NVIDIA)
    launch.races = RaceChecker(64, 32, Memory(), None, False)
    shape = Lanes((64, 1, 1), 0, 64, (2, 1, 1), 32)
    shared = private_segment(SHARED_BASE, SIZE, 2, "shared memory", "shared", False)
    group = Group(launch, shape, Block((0, 0, 0), 0, 64, 2, shared), 0)
    races = launch.races
    group.known = ThreadOrder(
        races.events, int(races.block_threads), range(2), shape, None, 0, {}, 2, {}
    )
    return group


def outcome(steps: list[tuple[str, int, int]]) -> tuple[int, str]:
    """The number of the step that raises, and the error's words."""
    group = shared_group()
    x = group.affine_tid(0).astype(np.int64)
    for number, (step, start, scale) in enumerate(steps):
        address = x * scale + np.int64(SHARED_BASE + start)
        assert isinstance(address, Affine)
        try:
            if step == "barrier":
                group.known.pass_barrier()
            elif step == "read":
                assert affine_access.load(group, READ, address, None) is not None
            elif not affine_access.store(group, WRITE, address, np.int32(7), None):
                return number, "lanes meet"
        except RaceError as error:
            return number, str(error)
    return len(steps), ""


@pytest.mark.parametrize("seed", range(60))
def test_the_same_races_are_found_as_by_words(seed, monkeypatch):
    chance = random.Random(seed)
    steps = [
        (
            chance.choice(("read", "read", "write", "barrier")),
            chance.randrange(0, 512, 4),
            chance.choice((0, 4, 4, 4, 8)),
        )
        for _ in range(12)
    ]
    found = outcome(steps)
    monkeypatch.setattr(RaceChecker, "_put_off", lambda *_: False)
    by_words = outcome(steps)
    assert found == by_words


def test_ordered_accesses_are_never_told_words():
    group = shared_group()
    x = group.affine_tid(0).astype(np.int64) * 4 + np.int64(SHARED_BASE)
    for _ in range(3):
        assert affine_access.store(group, WRITE, x, np.int32(1), None)
        assert affine_access.store(group, WRITE, x + 256, np.int32(1), None)
        group.known.pass_barrier()
        affine_access.load(group, READ, x * -1 + np.int64(2 * SHARED_BASE + 252), None)
        group.known.pass_barrier()
    history, _ = group.races.history(group.shared, 4)
    assert history.last == [None] * 4 and history.wrote
    assert history.last[PLAIN_WRITE] is None
