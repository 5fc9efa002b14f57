"""Scheduler of groups that wait for each other: each is a coroutine that yields a `Wait`.

A new kind of waiting needs no change here: only a `ready` function that says when it is over, and a
text for the report when it never is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from basedsl_cute.sim.errors import BarrierError, DeadlockError, SimulationError
from basedsl_cute.sim.machine.state import Block, Group
from basedsl_cute.sim.site import Site


@dataclass(slots=True, eq=False, repr=False)
class Wait:
    """A wait of a group until `ready()`. `describe()` says for what, as things stand.

    A wait that is not `patient` may end without being ready, when nothing else can go on: that of a
    loop that polls memory. `whole_block` marks barriers of all threads, `interrupts` no wait but
    an interruption.
    """

    ready: Callable[[], bool]
    describe: Callable[[], str]
    site: Site
    patient: bool = True
    whole_block: bool = False
    interrupts: bool = False


def spin(site: Site) -> Wait:
    """The wait of a loop that may be polling memory, before its next turn: others go first."""
    return Wait(lambda: False, lambda: "another turn of a polling loop", site, patient=False)


def pause(site: Site) -> Wait:
    """An interruption of a warp that waits for nothing: others may go first."""
    return Wait(lambda: True, lambda: "its turn", site, interrupts=True)


Run = Generator[Wait, None, None]


class OtherRanks(Protocol):
    """The other simulated ranks, as a launch of one rank sees them."""

    def pass_turn(self, moved: bool) -> None:
        """Let another rank go on; `moved` says that this one has done something."""

    def wait_turn(self, waits: list[tuple[Group, Wait]], max_spins: int) -> None:
        """Let another rank go on while all that this one can do is poll memory. Raises
        DeadlockError once all ranks have only done that for long.
        """


class _Task:
    __slots__ = ("group", "run", "wait")

    def __init__(self, group: Group, run: Run) -> None:
        self.group = group
        self.run = run
        self.wait: Wait | None = None


PATIENCE = 4  # rounds of nothing but polling after which more blocks start
LEAST_ROUNDS = 200  # of nothing but polling before that counts as a deadlock, however many poll


def run_together(
    tasks: list[tuple[Group, Run]],
    max_spins: int,
    stores: Callable[[], int],
    more: Callable[[], list[tuple[Group, Run]]] = list,
    chance: Random | None = None,
    others: OtherRanks | None = None,
) -> None:
    """Run all groups to their end, in order or as `chance` has it, each until it waits. Where
    several ranks are simulated, `others` run in between.

    When every group that can run polls memory, they may be waiting for blocks that have not
    started, which on a GPU run at the same time: `more` starts some. Raises BarrierError or
    DeadlockError when no group can go on, or when all have only polled, about `max_spins` times in
    all; `stores` gives the number of stores made so far.
    """
    live = [_Task(group, run) for group, run in tasks]
    ended: list[_Task] = []
    spins = interruptions = 0
    before = stores()
    try:
        while live:
            moved = False
            if chance is not None:
                chance.shuffle(live)
            for task in live:
                polls = task.wait is not None and not task.wait.patient
                if polls and chance is not None and chance.random() < 0.25:
                    task.wait = next(task.run, None)  # it sees what others are about to change
                    if task.wait is None:
                        ended.append(task)
                elif task.wait is None or task.wait.ready():
                    moved |= task.wait is None or not task.wait.interrupts
                    task.wait = next(task.run, None)
                    if task.wait is None:
                        ended.append(task)
            live = [task for task in live if task.wait is not None]
            if not live:
                break
            if others is not None:
                others.pass_turn(moved or stores() != before)
            if moved or stores() != before:
                spins = 0
                before = stores()
                if moved:
                    continue
            if any(task.wait.interrupts for task in live):  # type: ignore[union-attr]
                interruptions += 1
                if interruptions < 4:  # those that were interrupted go on first
                    continue
            interruptions = 0
            impatient = [task for task in live if not task.wait.patient]  # type: ignore[union-attr]
            spins += 1
            joining = more() if impatient and spins > PATIENCE else []
            if joining:
                live += [_Task(group, run) for group, run in joining]
                spins = 0
                continue
            if others is not None and impatient:
                waits = [(task.group, task.wait) for task in live if task.wait is not None]
                others.wait_turn(waits, max_spins)
            most = max(max_spins // max(len(impatient), 1), min(LEAST_ROUNDS, max_spins))
            if not impatient and any(task.wait.ready() for task in live):  # type: ignore[union-attr]
                continue  # an interrupted warp, or what one has let go on
            if not impatient or (others is None and spins > most):
                raise _stuck(live, ended, spins if impatient else 0)
            for task in impatient:
                task.wait = next(task.run, None)
                if task.wait is None:
                    ended.append(task)
            live = [task for task in live if task.wait is not None]
    finally:
        for task in live:
            task.run.close()


def _stuck(live: list[_Task], ended: list[_Task], spins: int) -> SimulationError:
    waits = [(task.group, task.wait) for task in live if task.wait is not None]
    places: dict[tuple[str, Site], list[Group]] = {}
    for group, wait in waits:
        places.setdefault((wait.describe(), wait.site), []).append(group)
    blocks = [wait for _, wait in waits if wait.whole_block]
    if blocks and ended and len(places) == 1:
        gone = ended[0].group
        return BarrierError(
            "a barrier that all threads of the block must reach waits for ever",
            blocks[0].site,
            waits[0][0].thread(0),
            notes=((f"{gone.thread(0)} has ended without reaching it", None),),
            hint="let every thread reach it, or name how many do: cute.arch.barrier(barrier_id=1, "
            "number_of_threads=n)",
        )
    what = _extent([task.group.block for task in (*live, *ended)])
    notes = []
    for (waited_for, site), groups in places.items():
        verb = "wait" if len(groups) > 1 else "waits"
        notes.append((f"{_warps(groups, what)} {verb} for {waited_for}", site.span))
    if ended:
        notes.append((f"{_warps([task.group for task in ended], what)} ended", None))
    message = f"deadlock: no thread of the {what} can go on"
    hint = (
        "let as many threads arrive, and as many bytes come, as those that wait expect: see what "
        "they wait for above"
    )
    if spins:
        message = f"deadlock: every running warp polls memory, {spins} times with no effect"
        hint = (
            "if the loop is right but long, raise the option max_spins (CUTE_DSL_MAX_SPINS=100000)"
        )
    return DeadlockError(message, waits[0][1].site, waits[0][0].thread(0), hint, tuple(notes))


def _extent(blocks: list[Block]) -> str:
    """The name of what runs together: one block, the cluster's blocks, or several of the grid."""
    if len({id(block.cluster) for block in blocks}) > 1:
        return "grid"
    return "cluster" if len(blocks[0].cluster.blocks) > 1 else "block"


def _warps(groups: list[Group], extent: str) -> str:
    """The warps by number, with their block where several run: its rank in a cluster, else its
    linear index.
    """
    by_block: dict[str, list[str]] = {}
    for group in groups:
        number = group.block.rank if extent == "cluster" else group.block.linear
        place = "" if extent == "block" else f" of block {number}"
        by_block.setdefault(place, []).append(str(group.first_warp))
    return " and ".join(
        f"warp{'s' if len(warps) > 1 else ''} {', '.join(warps)}{place}"
        for place, warps in by_block.items()
    )
