"""Order between threads that barriers of warps and blocks do not give: by fences and atomics.

PTX's memory model (PTX ISA, "Memory Consistency Model"): a release pattern on a location (a store
or atomic that releases, or a fence before a relaxed one) that an acquire pattern observes (a load
or atomic that acquires, or a fence after a relaxed one) orders what came before the first one
before what comes after the second. Each location has what was released there; threads have what
they acquired; barriers hand that on to others.

Knowledge is a dict: of a thread, a warp or a block (`of_thread`, `of_warp`, `of_block` give keys)
the event up to which its accesses are over.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.sim.machine.access import BLOCK_SCOPE, SYSTEM_SCOPE

Knowledge = dict[int, int]


def of_thread(thread: int) -> int:
    """The key of a thread by its number in the grid."""
    return thread << 2


def of_warp(warp: int) -> int:
    """The key of a warp by its number in the grid."""
    return (warp << 2) | 1


def of_block(block: int) -> int:
    """The key of a block by its number in the grid."""
    return (block << 2) | 2


def merge(into: Knowledge, other: Knowledge) -> None:
    """Add what `other` knows."""
    for key, event in other.items():
        if into.get(key, 0) < event:
            into[key] = event


class Released:
    """The releases of threads at locations: for all, for each rank and for each block alone."""

    def __init__(self) -> None:
        self.everywhere: dict[Any, Knowledge] = {}
        self.of_rank: dict[tuple[Any, int], Knowledge] = {}
        self.within: dict[tuple[Any, int], Knowledge] = {}

    def __bool__(self) -> bool:
        return bool(self.everywhere or self.of_rank or self.within)

    def release(self, place: Any, block: int, rank: int, scope: int, knowledge: Knowledge) -> None:
        """Add to what a thread of `block` of `rank` releases at `place`, for the threads of a
        scope.
        """
        merge(self.within.setdefault((place, block), {}), knowledge)
        if scope > BLOCK_SCOPE:
            merge(self.of_rank.setdefault((place, rank), {}), knowledge)
        if scope == SYSTEM_SCOPE:
            merge(self.everywhere.setdefault(place, {}), knowledge)

    def acquire(self, place: Any, block: int, rank: int, scope: int) -> Knowledge:
        """The releases that a thread of `block` of `rank` sees at `place`."""
        known: Knowledge = {}
        if scope == SYSTEM_SCOPE and place in self.everywhere:
            merge(known, self.everywhere[place])
        if scope > BLOCK_SCOPE and (place, rank) in self.of_rank:
            merge(known, self.of_rank[place, rank])
        if (place, block) in self.within:
            merge(known, self.within[place, block])
        return known

    def forget(self, place: Any, block: int, rank: int) -> None:
        """Forget what was released at `place`, which a store that releases nothing overwrites."""
        self.everywhere.pop(place, None)
        self.of_rank.pop((place, rank), None)
        self.within.pop((place, block), None)
