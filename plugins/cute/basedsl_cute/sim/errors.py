"""Errors of simulated kernels. Each names the Python line of the kernel, and a thread."""

from __future__ import annotations

from typing import Any, NamedTuple

from basedsl import DSLError, DSLRuntimeError, Span
from basedsl_cute.sim.site import Site


class Thread(NamedTuple):
    """A thread of a launch: its index in the block, and the index of the block in the grid."""

    thread: tuple[int, int, int]
    block: tuple[int, int, int]

    def __str__(self) -> str:
        return f"thread {_triple(self.thread)} of block {_triple(self.block)}"


def _triple(xyz: tuple[int, int, int]) -> str:
    return "(" + ", ".join(map(str, xyz)) + ")"


Note = tuple[str, Span | None]


def extent_note(name: str, size: int, element_size: int, element: Any) -> Note:
    """The note of an error about how much memory there is: bytes, and elements of a type."""
    return f"{name} has {size} bytes ({size // element_size} elements of {element})", None


class SimulationError(DSLRuntimeError):
    """A kernel failed in the simulator. `site` is the operation, `where` the thread to blame, each
    None if there is none.
    """

    def __init__(
        self,
        message: str,
        site: Site | None = None,
        where: Thread | None = None,
        hint: str | None = None,
        notes: tuple[Note, ...] = (),
    ) -> None:
        thread = () if where is None else ((f"in {where}", None),)
        own = site.notes if site is not None else ()
        super().__init__(message, site.span if site else None, hint, (*thread, *notes, *own))
        self.site = site
        self.where = where


class SimulationWarning(UserWarning):
    """The finding of a simulator's check whose level is "warn"."""


class MemoryAccessError(SimulationError):
    """An access out of bounds, misaligned, to read-only memory, or to memory of no argument."""


class CoordinateError(MemoryAccessError):
    """A coordinate of a tensor beyond its extent, also where the address is within an array."""


class UninitializedReadError(SimulationError):
    """A read of shared memory, or a sum begun in registers, that no thread has written."""


class BarrierError(SimulationError):
    """A barrier that not all the threads it waits for reach, or that is used inconsistently."""


class DeadlockError(SimulationError):
    """No thread can go on: all wait, or poll memory that nobody writes, or loop for ever."""


class RaceError(SimulationError):
    """Two threads touch the same shared memory, one writes, and nothing orders them."""


class WarpError(SimulationError):
    """A warp-wide operation that a lane it names does not execute, or one it does not name does."""


class AssertionFailedError(SimulationError, AssertionError):
    """An `assert` of the kernel is false."""


class ArithmeticTrapError(SimulationError):
    """An integer division by zero, or a loop whose step is not positive."""


class LaunchError(DSLRuntimeError):
    """A grid, block, cluster, argument list or shared-memory size that no GPU would take."""


class MissingRuleError(DSLError, NotImplementedError):
    """An operation, or a form of it, that the simulator has no rule for."""

    def __init__(self, site: Site, what: str = "") -> None:
        detail = f": {what}" if what else ""
        super().__init__(
            f"the target `sim` has no rule for the operation {site.op}{detail}",
            site.span,
            notes=site.notes,
            hint="run this kernel on a GPU target, or add a rule to basedsl_cute.sim.rules",
        )
        self.site = site
