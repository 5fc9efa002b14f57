"""Vector clocks alone: who knows of which access after releases, barriers, fences and waits."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.sim.machine.vector_clock import (
    FENCED,
    READ,
    SEEN,
    TENSOR,
    Stamp,
    VectorClocks,
)


def knows(clocks: VectorClocks, warp: int, agent: int, time: int, row: int = SEEN) -> bool:
    """True if `warp` knows that the accesses of `agent` up to `time` are over."""
    return bool(clocks.clocks[warp, row, agent] >= time)


def test_at_first_a_warp_knows_nothing_of_the_others():
    clocks = VectorClocks(3)
    assert clocks.clocks.shape == (3, 4, 9)
    start = clocks.start
    assert [clocks.time_of(warp) - start for warp in range(3)] == [1, 2, 3], "events of the launch"
    for warp in range(3):
        others = np.delete(clocks.clocks[warp, SEEN], warp)
        assert not others.any()
        assert not clocks.clocks[warp, FENCED].any()
        assert not clocks.clocks[warp, TENSOR].any()
        assert not clocks.clocks[warp, READ].any()


def test_a_release_is_known_after_publish_and_acquire():
    clocks = VectorClocks(2)
    before = clocks.time_of(0)
    clocks.release("token", 0)
    clocks.acquire("token", 1)
    assert not knows(clocks, 1, 0, before), "not published yet"
    clocks.publish("token")
    assert not knows(clocks, 1, 0, before), "not acquired yet"
    clocks.acquire("token", 1)
    assert knows(clocks, 1, 0, before)


def test_what_follows_a_release_is_not_handed_on():
    clocks = VectorClocks(2)
    clocks.release("token", 0)
    after = clocks.time_of(0)
    clocks.publish("token")
    clocks.acquire("token", 1)
    assert not knows(clocks, 1, 0, after)


def test_a_barrier_of_all_orders_all_pairs():
    clocks = VectorClocks(4)
    before = [clocks.time_of(warp) for warp in range(4)]
    for warp in range(4):
        clocks.release("barrier", warp)
    clocks.publish("barrier")
    for warp in range(4):
        clocks.acquire("barrier", warp)
    for warp in range(4):
        assert all(knows(clocks, warp, other, before[other]) for other in range(4))
        assert not any(knows(clocks, warp, other, clocks.time_of(other)) for other in range(4))


def test_knowledge_passes_through_a_third_warp():
    clocks = VectorClocks(3)
    before = clocks.time_of(0)
    for source, token, target in ((0, "a", 1), (1, "b", 2)):
        clocks.release(token, source)
        clocks.publish(token)
        clocks.acquire(token, target)
    assert knows(clocks, 2, 0, before)


def test_other_tokens_hand_on_nothing():
    clocks = VectorClocks(2)
    before = clocks.time_of(0)
    clocks.release("a", 0)
    clocks.publish("a")
    clocks.publish("b")
    clocks.acquire("b", 1)
    assert not knows(clocks, 1, 0, before)


def test_a_phase_published_later_does_not_forget_the_earlier():
    clocks = VectorClocks(3)
    first, second = clocks.time_of(0), clocks.time_of(1)
    clocks.release("mbarrier", 0)
    clocks.publish("mbarrier")
    clocks.release("mbarrier", 1)
    clocks.publish("mbarrier")
    clocks.acquire("mbarrier", 2)
    assert knows(clocks, 2, 0, first)
    assert knows(clocks, 2, 1, second)


@pytest.mark.parametrize(("kind", "fenced"), [(1, True), (2, False)])
def test_an_asynchronous_access_ends_for_who_waits(kind, fenced):
    """The asynchronous unit sees its own accesses; those of cp.async only past a fence."""
    clocks = VectorClocks(2)
    agent = 2 * kind
    stamp = clocks.begin_access(agent)
    assert stamp == Stamp(agent, 1)
    assert not knows(clocks, 0, agent, stamp.time)
    clocks.end_access(stamp, 0)
    assert knows(clocks, 0, agent, stamp.time)
    assert knows(clocks, 0, agent, stamp.time, FENCED) == fenced
    assert not knows(clocks, 1, agent, stamp.time)
    assert clocks.begin_access(agent) == Stamp(agent, 2)
    assert not knows(clocks, 0, agent, 2)


def test_an_asynchronous_access_is_released_through_an_mbarrier():
    clocks = VectorClocks(2)
    stamp = clocks.begin_access(2)
    own = clocks.time_of(0)
    clocks.release_access("mbarrier", stamp)
    clocks.publish("mbarrier")
    clocks.acquire("mbarrier", 1)
    assert knows(clocks, 1, 2, stamp.time)
    assert not knows(clocks, 1, 0, own), "the warp that issued the copy has released nothing"


def test_a_proxy_fence_covers_what_the_warp_knows_and_not_what_it_does_later():
    clocks = VectorClocks(2)
    written = clocks.time_of(0)
    clocks.release("barrier", 0)
    clocks.publish("barrier")
    clocks.acquire("barrier", 1)
    own = clocks.time_of(1)
    assert not knows(clocks, 1, 0, written, FENCED)
    clocks.fence_proxy(1)
    assert knows(clocks, 1, 0, written, FENCED)
    assert knows(clocks, 1, 1, own, FENCED)
    assert not knows(clocks, 1, 1, clocks.time_of(1), FENCED)


def test_a_relaxed_release_hands_on_the_fenced_mbarriers_alone():
    clocks = VectorClocks(2)
    initialised = clocks.time_of(0)
    clocks.fence_mbarriers(0)
    written = clocks.time_of(0)
    clocks.release_mbarriers("cluster", 0)
    clocks.publish("cluster")
    clocks.acquire("cluster", 1)
    assert knows(clocks, 1, 0, initialised)
    assert knows(clocks, 1, 0, initialised, FENCED)
    assert not knows(clocks, 1, 0, written)


def test_a_release_of_reads_hands_on_no_ordinary_writes():
    clocks = VectorClocks(2)
    touched = clocks.time_of(0)
    copied = clocks.begin_access(2)
    clocks.end_access(copied, 0)
    clocks.release_reads("token", 0)
    clocks.publish("token")
    clocks.acquire("token", 1)
    assert not knows(clocks, 1, 0, touched)
    assert knows(clocks, 1, 0, touched, READ)
    assert knows(clocks, 1, copied.agent, copied.time)


def test_a_relaxed_release_without_a_fence_hands_on_only_that_the_warp_runs():
    clocks = VectorClocks(2)
    written = clocks.time_of(0)
    clocks.release_mbarriers("cluster", 0)
    clocks.publish("cluster")
    clocks.acquire("cluster", 1)
    assert knows(clocks, 1, 0, clocks.start)
    assert not knows(clocks, 1, 0, written)


def test_names_of_agents():
    one = VectorClocks(2)
    assert [one.agent_name(agent, 2) for agent in (1, 3, 4)] == [
        "warp 1",
        "the asynchronous unit for warp 1",
        "cp.async of warp 0",
    ]
    cluster = VectorClocks(4)
    assert cluster.agent_name(3, 2) == "warp 1 of block 1"
    assert cluster.agent_name(4 + 2, 2) == "the asynchronous unit for warp 0 of block 1"
