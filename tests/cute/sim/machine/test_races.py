"""Race checks on shared memory, access by access."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from basedsl_cute.sim import RaceError
from basedsl_cute.sim.machine import races
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.site import Site

READ = MemoryAccess(np.dtype(np.int32), (), 4, 3, None, Site("read", None), "i32", "read")
WRITE = MemoryAccess(np.dtype(np.int32), (), 4, 3, None, Site("write", None), "i32", "write")
ATOMIC = dataclasses.replace(WRITE, strong=True)
STRONG_READ = dataclasses.replace(READ, strong=True)
BYTES = np.arange(4)


def access(g, kind: str, at: int = 0, lane: int = 0, atomic: bool = False) -> None:
    """An ordinary access of one lane to the int32 at the offset `at`."""
    who, offset = np.array([lane]), np.array([at])
    if kind == "write":
        races.check_write(g.shadow, g, ATOMIC if atomic else WRITE, offset, who)
    else:
        m = np.zeros(g.lanes, np.bool_)
        m[lane] = True
        a = STRONG_READ if atomic else READ
        races.check_read(g.shadow, g, a, np.full(g.lanes, at), m)


def barrier(*groups) -> None:
    order = groups[0].shadow.order
    for g in groups:
        order.release("barrier", g.agent)
    order.publish("barrier")
    for g in groups:
        order.acquire("barrier", g.agent)


@pytest.mark.parametrize("first", ["read", "write"])
@pytest.mark.parametrize("second", ["read", "write"])
@pytest.mark.parametrize("ordered", [False, True])
def test_two_warps_race_where_one_writes_and_nothing_orders_them(warps, first, second, ordered):
    a, b = warps(2)
    access(a, first)
    if ordered:
        barrier(a, b)
    if ordered or first == second == "read":
        access(b, second)
        return
    with pytest.raises(RaceError, match=f"this {second} and a {first} by warp 0 touch byte 0 of"):
        access(b, second)


def test_accesses_of_one_warp_never_race(warps):
    (a,) = warps(1)
    access(a, "write", lane=3)
    access(a, "read", lane=4)
    access(a, "write", lane=5)


def test_neighbouring_elements_do_not_race(warps):
    a, b = warps(2)
    access(a, "write", at=0)
    access(b, "write", at=4)
    with pytest.raises(RaceError, match=r"touch byte 4 of `tile`"):
        access(a, "read", at=4)


def test_atomics_race_with_plain_accesses_alone(warps):
    a, b = warps(2)
    access(a, "write", atomic=True)
    access(b, "write", atomic=True)
    access(a, "read", atomic=True)
    access(b, "write", atomic=True)
    with pytest.raises(RaceError):
        access(a, "read")


def test_a_barrier_orders_only_what_lies_before_it(warps):
    a, b = warps(2)
    barrier(a, b)
    access(a, "write")
    with pytest.raises(RaceError, match="put a barrier between them"):
        access(b, "read")


def test_an_asynchronous_write_lasts_until_it_is_waited_for(warps):
    (a,) = warps(1)
    stamp = races.begin_async_write(a.shadow, a, Site("tma", None), "write by a TMA load", BYTES, 0)
    with pytest.raises(RaceError, match="a write by the asynchronous unit for warp 0"):
        access(a, "read")
    a.shadow.order.end_access(stamp, a.agent)
    access(a, "read")


def test_an_asynchronous_read_needs_a_proxy_fence_after_a_write(warps):
    (a,) = warps(1)
    access(a, "write")

    def read() -> None:
        races.begin_async_read(a.shadow, a, Site("tma", None), "read by a TMA store", BYTES, 0)

    with pytest.raises(RaceError, match="missing proxy fence: this read by a TMA store"):
        read()
    a.shadow.order.fence_proxy(a.agent)
    read()


def test_an_mbarrier_must_be_initialised_before_and_fenced_for_copies(warps):
    a, b = warps(2)
    site = Site("mbarrier", None)
    races.check_mbarrier_init(a.shadow, a, site, 8, 0)
    races.check_mbarrier_use(a.shadow, a, site, "arrival", 8, 0)
    with pytest.raises(RaceError, match="this arrival and a write by warp 0 touch byte 8"):
        races.check_mbarrier_use(b.shadow, b, site, "arrival", 8, 0)
    with pytest.raises(
        RaceError, match="missing fence: this copy counts at the mbarrier at byte 8"
    ):
        races.check_mbarrier_fenced(a.shadow, a, site, 8, 0)
    a.shadow.order.fence_mbarriers(a.agent)
    races.check_mbarrier_fenced(a.shadow, a, site, 8, 0)


def test_a_block_ends_after_the_accesses_of_others_to_its_memory(warps):
    a, b = warps(1, blocks=2)
    with pytest.raises(RaceError, match="another block, which may not have started"):
        races.check_write(a.block.shadow, b, WRITE, np.array([8]), np.array([0]))
    barrier(a, b)
    stamp = races.begin_async_write(a.block.shadow, b, Site("st", None), "store", BYTES, 0)
    with pytest.raises(RaceError, match="this store is in the shared memory of another block"):
        races.check_visits(a.launch, a.block, 0)
    races.check_visits(a.launch, b.block, 0)
    a.shadow.order.end_access(stamp, a.agent)
    races.check_visits(a.launch, a.block, 0)


def test_tables_that_are_used_again_know_nothing(warps):
    """A larger cluster has agents that a smaller one does not have."""
    *_, last = warps(2, blocks=4)
    barrier(last)
    stamp = races.begin_async_write(last.shadow, last, Site("tma", None), "write", BYTES, 0)
    last.shadow.order.end_access(stamp, last.agent)
    access(last, "read")
    access(last, "write", atomic=True)
    tables = last.shadow.write_time
    last.shadow.give_back()
    a, b = warps(2)
    assert a.shadow.write_time is tables
    access(b, "write", at=4)
    access(a, "read")
    assert not a.shadow.write_atomic.any() and not a.shadow.read_atomic.any()
    assert np.count_nonzero(a.shadow.read_time) == np.count_nonzero(a.shadow.write_time) == 4
