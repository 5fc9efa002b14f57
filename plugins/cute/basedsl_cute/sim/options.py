"""Options of a simulated launch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

_ARCH = "CUTE_DSL_ARCH"

LockstepWidth = Literal["warp", "block", "grid"]
"""The lanes that one call of the generated function runs in lock step: a warp, a block, or many
blocks of the grid."""


Level = Literal["off", "warn", "error"]
"""The consequence of a finding: nothing, a warning, an error."""


@dataclass(frozen=True, slots=True)
class SimOptions:
    """Options of a launch. None of them changes what a correct kernel computes.

    `width` is how many lanes run in lock step: "auto" takes the most that the kernel allows.
    `check_uninitialized` reports what nobody has written where it matters, `check_division`
    quotients by zero where they do. `check_races` reports accesses that nothing orders. `max_spins`
    is how many times a polling loop may go round while nothing else happens, `max_steps` how many
    turns a `while` loop may take. `batch_lanes` is the most lanes that run together when a group is
    many blocks. `schedule_seed` shuffles the order of warps and blocks, which then run one warp at
    a time; 0 does not.
    """

    width: Literal["auto", "warp", "block", "grid"] = "auto"
    check_uninitialized: Level | bool = "error"
    check_races: Level | bool = "off"
    check_division: Level | bool = "error"
    check_coordinates: Level | bool = "error"
    max_spins: int = 10_000
    max_steps: int = 1_000_000
    batch_lanes: int = 1 << 16
    schedule_seed: int = 0

    def level(self, check: str) -> Level:
        """The level of a check: "races", "uninitialized", "division" or "coordinates"."""
        value = getattr(self, f"check_{check}")
        if isinstance(value, bool):
            return "error" if value else "off"
        return cast(Level, value)

    @staticmethod
    def of(settings: Any) -> SimOptions:
        """The options of launches that the options of the DSL, `CuteOptions`, ask for."""
        return SimOptions(
            check_races=settings.check_races,
            check_uninitialized=settings.check_uninitialized,
            check_division=settings.check_division,
            check_coordinates=settings.check_coordinates,
            max_spins=settings.max_spins,
            max_steps=settings.max_steps,
            schedule_seed=settings.schedule_seed,
        )


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """Calls run on the simulator meanwhile, in all threads of the process, also where a GPU is."""
    before = os.environ.get(_ARCH)
    os.environ[_ARCH] = "sim"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ARCH]
        else:
            os.environ[_ARCH] = before
