"""A block's state while it runs: shared memory, barriers, mbarriers.

Hardware facts: barriers count threads in whole warps, and there are 16 of them (PTX ISA, bar and
barrier); an mbarrier's phase ends when no arrivals and no transaction bytes are pending (PTX ISA,
mbarrier).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from basedsl_cute.device.tensor_map import TensorMap
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.sim.errors import BarrierError, SimulationError
from basedsl_cute.sim.machine.cluster import Cluster
from basedsl_cute.sim.machine.group import Group
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.races import RaceDetector, Stamp
from basedsl_cute.sim.machine.register_pool import RegisterPool
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.site import Site

BARRIERS = 16


@dataclass(slots=True, eq=False, repr=False)
class NamedBarrier:
    """One of a block's barriers. `generation` counts how often it has completed."""

    number: int
    expected: int = 0
    arrived: int = 0
    generation: int = 0
    sites: list[tuple[Group, Site]] = field(default_factory=list)
    votes: list[Any] = field(default_factory=list)
    outcome: list[Any] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class MBarrier:
    """An mbarrier object: `phase` is the number of the phase that is not complete yet."""

    count: int
    pending: int
    site: Site  # where it was initialised
    transactions: int = 0
    phase: int = 0
    arrived: dict[Site, int] = field(default_factory=dict)  # in this phase, and where

    @property
    def is_needed(self) -> bool:
        """Nobody has used it yet, or some arrivals of a phase are still to come."""
        return self.phase == 0 or self.pending != self.count

    def settle(self) -> bool:
        """End the phase if nothing of it is pending; whether that is so."""
        over = self.pending == 0 and self.transactions == 0
        if over:
            self.phase += 1
            self.pending = self.count
            self.arrived.clear()
        return over

    def arrive(self, number: int, site: Site) -> None:
        """Count arrivals."""
        self.pending -= number
        self.arrived[site] = self.arrived.get(site, 0) + number

    def __str__(self) -> str:
        """What is still to come before the phase ends."""
        here = " and ".join(f"{number} at {site.line}" for site, number in self.arrived.items())
        text = f"{self.pending} of {self.count} arrivals still to come"
        text += f"; there were {here}" if here else ""
        if self.transactions > 0:
            text += f"; {self.transactions} bytes still to come"
        if self.transactions < 0:
            text += f"; {-self.transactions} bytes came that nobody expects"
        return f"{text}; initialised at {self.site.line}"


class Block:
    """One block, or in lock step several: then `index` holds an array per axis."""

    def __init__(
        self,
        index: tuple[Any, Any, Any],
        linear: int,
        threads: int,
        shared: Segment,
        races: RaceDetector | None = None,
        rank: int = 0,
    ) -> None:
        self.index = index
        self.linear = linear
        self.rank = rank  # in the cluster
        self.threads = threads
        self.warps = -(-threads // WARP_SIZE)
        self.shared = shared
        self.races = races
        self.epoch = 0
        self.barriers: dict[int, NamedBarrier] = {}
        self.mbarriers: dict[int, MBarrier] = {}
        self.tensor_maps: dict[int, TensorMap] = {}  # by address, as the block last acquired them
        self.cluster = Cluster([self], self.warps)
        self.registers = RegisterPool(self.warps)
        self._in_flight: dict[int, list[Callable[[], None]]] = {}

    # Barriers --------------------------------------------------------------------------------

    def arrive(
        self, g: Group, site: Site, number: int, count: int | None, votes: Any = None
    ) -> NamedBarrier:
        """Count the warp of `g` as arrived; `count` None means all threads of the block."""
        if not 0 <= number < BARRIERS:
            raise SimulationError(
                f"barrier {number} does not exist: they are numbered 0 to {BARRIERS - 1}",
                site,
                g.thread(0),
            )
        barrier = self.barriers.setdefault(number, NamedBarrier(number))
        whole = self.warps * WARP_SIZE
        expected = whole if count is None else count
        if expected <= 0 or expected % WARP_SIZE:
            raise BarrierError(
                f"a barrier of {expected} threads: it must be a positive multiple of {WARP_SIZE}",
                site,
                g.thread(0),
            )
        self._check_agreement(barrier, g, site, expected, count is None)
        barrier.expected = expected
        barrier.arrived += WARP_SIZE
        barrier.sites.append((g, site))
        if votes is not None:
            barrier.votes.append(votes)
        if self.races is not None:
            self.races.order.release(("barrier", self.linear, number), g.agent)
        if barrier.arrived >= expected:
            barrier.generation += 1
            barrier.arrived = 0
            barrier.sites = []
            barrier.outcome, barrier.votes = barrier.votes, []
            if expected == whole:
                self.passed()
            if self.races is not None:
                self.races.order.publish(("barrier", self.linear, number))
        return barrier

    def passed(self) -> None:
        """All threads have reached a barrier."""
        self.epoch += 1
        self.shared.settle_writes()

    def _check_agreement(
        self, barrier: NamedBarrier, g: Group, site: Site, expected: int, whole: bool
    ) -> None:
        if not barrier.sites:
            return
        other, first = barrier.sites[0]
        if barrier.expected != expected:
            raise BarrierError(
                f"barrier {barrier.number} is waited at for {expected} threads here and for "
                f"{barrier.expected} elsewhere",
                site,
                g.thread(0),
                notes=((f"{other.thread(0)} is here", first.span),),
            )
        if whole and first is not site:
            raise BarrierError(
                f"threads of one block wait at different barriers: {g.thread(0)} at {site.line}, "
                f"{other.thread(0)} at {first.line}",
                site,
                notes=(("the other barrier", first.span),),
                hint="move the barrier out of the branch, so that all threads reach the same one",
            )

    def wait_for(
        self, barrier: NamedBarrier, before: int, g: Group, site: Site, whole: bool
    ) -> Wait | None:
        """A wait for the end of generation `before`; None when that is over already."""
        if barrier.generation > before:
            return None
        what = f"barrier {barrier.number}"
        what += " of all threads" if whole else f" of {barrier.expected} threads"
        return Wait(lambda: barrier.generation > before, lambda: what, site, whole_block=whole)

    # mbarriers -------------------------------------------------------------------------------

    def send(self, offset: int, land: Callable[[], None]) -> None:
        """Something is on its way that counts at the mbarrier at `offset`: `land` lets it arrive,
        when that mbarrier is next looked at.
        """
        self._in_flight.setdefault(offset, []).append(land)

    def land(self, offset: int, place: Any, data: Any, stamp: Stamp | None) -> None:
        """Bytes that count at the mbarrier at `offset` arrive at `place` in shared memory."""
        self.shared.raw[place] = data
        if self.shared.written is not None:
            self.shared.written[place] = 255
        self.mbarriers[offset].transactions -= data.nbytes
        if stamp is not None and self.races is not None:
            self.races.order.land(self.token(offset), stamp)

    def receive(self, offset: int) -> None:
        """Let what counts at the mbarrier at `offset` arrive."""
        if offset in self._in_flight:
            for land in self._in_flight.pop(offset):
                land()
            self.settle(offset)

    def settle(self, offset: int) -> None:
        """End the phase of the mbarrier at `offset` if nothing of it is pending."""
        if self.mbarriers[offset].settle() and self.races is not None:
            self.races.order.publish(self.token(offset))

    def token(self, offset: int) -> tuple[str, int, int]:
        """What the race check knows the mbarrier at `offset` by."""
        return ("mbarrier", self.linear, offset)

    def mbarrier(self, offset: int, g: Group, site: Site, lane: int) -> MBarrier:
        """The mbarrier at this shared address; an error if nobody initialised it."""
        found = self.mbarriers.get(offset)
        if found is None:
            name, start, _ = g.shared_variable(offset)
            raise SimulationError(
                f"no mbarrier was initialised at byte offset {offset - start} of `{name}`",
                site,
                g.thread(lane),
                hint="initialise it in one thread and put a barrier before its first use",
            )
        return found
