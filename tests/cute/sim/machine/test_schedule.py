"""The scheduler: coroutines that wait for each other, and the reports when none can go on."""

from __future__ import annotations

import pytest

from basedsl_cute.sim import BarrierError, DeadlockError
from basedsl_cute.sim.machine.schedule import Wait, run_together, spin
from basedsl_cute.sim.site import Site

SITE = Site("wait", None)


def run(tasks, max_spins=1000, stores=lambda: 0, **options):
    run_together(tasks, max_spins, stores, **options)


def test_groups_run_in_order_each_until_it_waits(warps):
    a, b = warps(2)
    seen = []

    def task(name, other):
        seen.append(f"{name} begins")
        yield Wait(lambda: f"{other} begins" in seen, lambda: other, SITE)
        seen.append(f"{name} ends")

    run([(a, task("a", "b")), (b, task("b", "a"))])
    assert seen == ["a begins", "b begins", "a ends", "b ends"]


def test_a_deadlock_says_what_each_warp_waits_for(warps):
    groups = warps(3)

    def never():
        yield Wait(lambda: False, lambda: "Godot", SITE)

    def ends():
        return
        yield

    tasks = [(groups[0], never()), (groups[1], never()), (groups[2], ends())]
    with pytest.raises(DeadlockError) as caught:
        run(tasks)
    text = str(caught.value)
    assert "deadlock: no thread of the block can go on" in text
    assert "note: warps 0, 1 wait for Godot" in text
    assert "note: warp 2 ended" in text


def test_a_barrier_of_all_threads_after_one_has_ended(warps):
    a, b = warps(2)

    def waits():
        yield Wait(lambda: False, lambda: "barrier 0", SITE, whole_block=True)

    def ends():
        return
        yield

    with pytest.raises(BarrierError, match="has ended without reaching it"):
        run([(a, waits()), (b, ends())])


def test_polling_ends_when_another_group_stores(warps):
    a, b = warps(2)
    stored = []

    def polls():
        while not stored:
            yield spin(SITE)

    def stores_late():
        for _ in range(50):
            yield spin(SITE)
        stored.append(1)

    run([(a, polls()), (b, stores_late())], stores=lambda: len(stored))
    assert stored == [1]


def test_polling_for_ever_is_a_deadlock(warps):
    (a,) = warps(1)

    def polls():
        while True:
            yield spin(SITE)

    with pytest.raises(DeadlockError, match="every running warp polls memory, 301 times"):
        run([(a, polls())], max_spins=300)


def test_more_blocks_start_when_all_that_run_only_poll(warps):
    a, b = warps(1, blocks=2)
    flag = []

    def polls():
        while not flag:
            yield spin(SITE)

    def sets():
        flag.append(1)
        return
        yield

    later = iter([[(b, sets())]])
    run([(a, polls())], stores=lambda: len(flag), more=lambda: next(later, []))
    assert flag == [1]
