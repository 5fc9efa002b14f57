"""Several simulated ranks in one process: each a thread of its own, of which one runs at a time.

A rank hands on the turn in the launches of its kernels: when all that they can do is poll memory,
and, with a seed, by chance. So the order in which ranks run is repeated by the seed.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from basedsl import DSLCallError, Span
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.sim.errors import DeadlockError, RaceError, SimulationWarning
from basedsl_cute.sim.machine.memory import Memory, Segment
from basedsl_cute.sim.machine.rank_order import RankOrder
from basedsl_cute.sim.machine.schedule import LEAST_ROUNDS, Wait
from basedsl_cute.sim.machine.state import Group, SimLaunch
from basedsl_cute.sim.options import SimOptions

_here = threading.local()
_DELAY = 8  # turns that a launch may be late by, in a shuffled order

Waits = list[tuple[Group, Wait]]


def current_rank() -> Rank | None:
    """The simulated rank that this thread is; None outside of `World.run`."""
    found: Rank | None = getattr(_here, "rank", None)
    return found


class _AbandonedError(BaseException):
    """Another rank has failed: this one ends too."""


class Rank:
    """One simulated rank: its turn, and what it waits for if it cannot go on."""

    def __init__(self, world: World, rank: int) -> None:
        self.world = world
        self.rank = rank
        self.go = threading.Semaphore(0)
        self.ended = False
        self.launches = 0
        self.idle = 0  # turns without anything but polling
        self.idle_since = -1  # the progress of the world when they began
        self.waits: Waits = []
        self.meets: Span | None = None  # where it waits for the other ranks' host code
        self.meetings = 0

    # Launches: see `schedule.OtherRanks` ---------------------------------------------------------

    def begin_launch(self, options: SimOptions) -> SimOptions:
        """Let others go first by chance; the options of the launch, with its own seed."""
        chance = self.world.chance
        self.launches += 1
        self.leave_host(options)
        if chance is None:
            return options
        for _ in range(chance.randrange(_DELAY)):
            self.pass_turn(True)
        return dataclasses.replace(options, schedule_seed=chance.randrange(1, 1 << 30))

    def with_symmetric(self, memory: Memory) -> Memory:
        """A table with the symmetric memory of all ranks besides what a launch may touch: kernels
        may have its addresses from memory.
        """
        memory = memory.copy()
        for one in self.world.order.memory:
            if memory.find(one.low) is None:
                memory.insert(Segment(one.low, one.raw, f"symmetric memory of rank {one.rank}"))
        return memory

    def end_launch(self, launch: SimLaunch) -> None:
        """Let the checks of later launches know that this one is over."""
        self.waits = []
        if launch.races is not None:
            gathered = [order.gathered() for order in launch.races.orders]
            self.world.order.end(launch.races.number, gathered)
        self.pass_turn(True)
        self.world.order.enter_host(self.rank)

    def leave_host(self, options: SimOptions) -> None:
        """Take what host code has written in this rank's memory. Raises RaceError where another
        rank may be using it.
        """
        found = self.world.order.leave_host(self.rank)
        if found is None or options.level("races") == "off":
            return
        a = found.access
        verb = "access" if a is None else a.verb
        error = RaceError(
            f"race on global memory: host code of rank {self.rank} writes what rank {found.rank} "
            "may be using",
            notes=(
                (f"the {verb} by rank {found.rank}", None if a is None else a.site.span),
                (f"nothing orders the two, which touch byte {found.byte}", None),
            ),
            hint="let this rank's kernel end with a barrier of all ranks: x.signals.barrier",
        )
        if options.level("races") == "error":
            raise error
        warnings.warn(SimulationWarning(str(error)), stacklevel=2)

    def pass_turn(self, moved: bool) -> None:
        """Hand on the turn by chance, or keep it."""
        self.world.progress += moved
        chance = self.world.chance
        if chance is not None and chance.random() < 0.5:
            self.world.switch(self)

    def wait_turn(self, waits: Waits, max_spins: int) -> None:
        """Hand on the turn; DeadlockError if no rank has done anything for long."""
        self.waits = waits
        self._idle(min(LEAST_ROUNDS, max_spins))
        self.waits = []

    def _idle(self, most: int) -> None:
        world = self.world
        if self.idle_since != world.progress:
            self.idle, self.idle_since = 0, world.progress
        self.idle += 1
        if all(r.ended or (r.idle_since == world.progress and r.idle > most) for r in world.ranks):
            raise world.deadlock()
        world.switch(self)

    def meet(self, span: Span | None) -> None:
        """Wait until the host code of all ranks has come here."""
        world = self.world
        world.order.leave_host(self.rank)
        self.meets = span
        self.meetings += 1
        number = self.meetings
        if all(r.meetings >= number for r in world.ranks):
            world.order.meet()
            world.progress += 1
        while any(r.meetings < number for r in world.ranks):
            self._idle(LEAST_ROUNDS)
        self.meets = None
        world.order.enter_host(self.rank)


class World:
    """Simulated ranks `0` to `count - 1`, each with memory of its own, and all of them peers.

    `ranks(count)` makes one. With a `seed`, which is not 0, ranks are late and interrupted by
    chance, and warps and blocks of their kernels run in a shuffled order: the same for one seed.
    """

    def __init__(self, count: int, seed: int = 0) -> None:
        self.count = count
        self.seed = seed
        self.chance = Random(seed) if seed else None
        self.order = RankOrder(count)
        self.progress = 0
        self.ranks = [Rank(self, number) for number in range(count)]
        self.describe: dict[int, Callable[[int], str]] = {}  # by the address of a memory
        self.multicast: list[tuple[int, int, tuple[int, ...]]] = []  # see `add_multicast`
        self._done = threading.Semaphore(0)
        self._failed: BaseException | None = None

    def run(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Call `function(*own)` on every rank at the same time, where `own` has for each of
        `arguments` the item of the rank; without arguments, `function(rank)`. Return the results.

        Host code between launches runs without interruption. The first error of a rank is raised,
        with the rank as a note; DeadlockError if no rank can go on. Raises DSLCallError for
        arguments that are not one for each rank, and within another `run`.
        """
        if current_rank() is not None:
            raise DSLCallError("a simulated rank cannot run ranks itself")
        for each in arguments:
            if len(each) != self.count:
                raise DSLCallError(f"{len(each)} arguments for {self.count} ranks")
        results: list[Any] = [None] * self.count
        self._failed = None
        self.ranks = [Rank(self, number) for number in range(self.count)]

        def body(rank: Rank) -> None:
            _here.rank = rank
            rank.go.acquire()
            try:
                if self._failed is None:
                    self.order.enter_host(rank.rank)
                    own = [each[rank.rank] for each in arguments] or [rank.rank]
                    results[rank.rank] = function(*own)
            except _AbandonedError:
                pass
            except BaseException as error:
                error.add_note(f"on simulated rank {rank.rank} of {self.count}")
                self._failed = self._failed or error
            rank.ended = True
            self.progress += 1
            live = [r for r in self.ranks if not r.ended]
            (self._next(rank).go if live else self._done).release()

        threads = []
        for rank in self.ranks:
            context = contextvars.copy_context()
            threads.append(threading.Thread(target=context.run, args=(body, rank), daemon=True))
            threads[-1].start()
        self._next(self.ranks[-1]).go.release()
        self._done.acquire()
        for thread in threads:
            thread.join()
        self.order.meet()
        if self._failed is not None:
            raise self._failed
        return results

    def barrier(self) -> None:
        """Wait, in host code inside `run`, until all ranks have called this, as a barrier of a
        process group does. Raises DSLCallError outside of `run`.
        """
        from basedsl import user_span

        rank = current_rank()
        if rank is None or rank.world is not self:
            raise DSLCallError("barrier() is called by the ranks of this world, inside run()")
        rank.meet(user_span())

    def add_memory(
        self, address: int, raw: Any, rank: int, describe: Callable[[int], str] | None = None
    ) -> None:
        """Follow accesses to symmetric memory of `rank`: the bytes `raw`, uint8, at `address`.
        `describe` names an offset in reports of deadlocks.
        """
        self.order.add_memory(address, raw, rank)
        if describe is not None:
            self.describe[address] = describe

    def add_multicast(self, address: int, nbytes: int, bases: Sequence[int]) -> None:
        """Let the `nbytes` from `address` on, which are no memory of their own, stand for those of
        every rank, which begin at `bases`.
        """
        self.multicast.append((address, nbytes, tuple(bases)))

    # Turns ---------------------------------------------------------------------------------------

    def _next(self, rank: Rank) -> Rank:
        live = [r for r in self.ranks if not r.ended]
        if self.chance is not None:
            return self.chance.choice(live)
        later = [r for r in live if r.rank > rank.rank]
        return (later or live)[0]

    def switch(self, rank: Rank) -> None:
        """Hand the turn of `rank` to another one, and wait for it."""
        other = self._next(rank)
        if other is not rank:
            other.go.release()
            rank.go.acquire()
        if self._failed is not None:
            raise _AbandonedError

    # Deadlocks -----------------------------------------------------------------------------------

    def deadlock(self) -> DeadlockError:
        """The error that says for what each rank waits."""
        notes: list[tuple[str, Span | None]] = []
        site = where = None
        for rank in self.ranks:
            if rank.ended:
                launched = "" if rank.launches else " without a launch"
                notes.append((f"rank {rank.rank} has ended{launched}", None))
            elif rank.meets is not None:
                notes.append((f"rank {rank.rank} waits at a barrier of the host", rank.meets))
            seen: set[Any] = set()
            for group, wait in rank.waits if not rank.ended else ():
                what = self._waited_for(group, wait)
                if (what, wait.site) not in seen:
                    seen.add((what, wait.site))
                    if wait.patient is False and site is None:
                        site, where = wait.site, group.thread(0)
                    notes.append((f"rank {rank.rank} waits for {what}", wait.site.span))
        return DeadlockError(
            f"deadlock: none of {self.count} ranks can go on",
            site,
            where,
            "a signal is missing, or went to another slot or rank, or some rank skipped a barrier",
            tuple(notes),
        )

    def _waited_for(self, group: Group, wait: Wait) -> str:
        if wait.patient or group.polled is None:
            return wait.describe()
        found = self.order.range_at(group.polled)
        if found is None:
            return wait.describe()
        describe = self.describe.get(found.low)
        if describe is None:
            return f"a change of byte {group.polled - found.low} of memory of rank {found.rank}"
        return describe(group.polled - found.low)


@contextlib.contextmanager
@explains_arguments
def ranks(count: int, seed: int = 0) -> Iterator[World]:
    """Simulate `count` ranks: `world.run(function)` calls a function on each, at the same time.

    `seed` chooses the order in which ranks, blocks and warps run; 0 is one rank after another, each
    until it waits. Raises DSLCallError for a count that is no positive int.

    >>> with sim.ranks(4) as world:
    ...     print(world.run(lambda rank: rank * rank))
    [0, 1, 4, 9]
    """
    if type(count) is not int or count < 1:
        raise DSLCallError(f"ranks() takes how many ranks there are, not {count!r}")
    yield World(count, seed)
