"""Runs of a program under many schedules of warps and blocks, to find what depends on them."""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from basedsl import DSLCallError, with_article
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.options import SimOptions, simulated

_seed: contextvars.ContextVar[int] = contextvars.ContextVar("schedule_seed", default=0)


class Failure(NamedTuple):
    """A schedule under which a program failed: `CUTE_DSL_SCHEDULE_SEED=seed` repeats it."""

    seed: int
    error: SimulationError


def seeded(options: SimOptions) -> SimOptions:
    """The options with the seed of the schedule that `explore` tries now, if it does."""
    seed = _seed.get()
    return dataclasses.replace(options, schedule_seed=seed) if seed else options


@explains_arguments
def explore(
    function: Callable[..., Any], args: Sequence[Any], schedules: int = 100
) -> list[Failure]:
    """Call `function(*args)` on the simulator under `schedules` schedules, and return those under
    which it failed, each with the seed that repeats it.

    A schedule is the order in which warps and blocks run, and where a warp is interrupted at
    atomics and ordered accesses. NumPy arrays among `args` are copied for each call, so that all
    begin alike and none is changed. Errors that are not the simulator's are raised. Raises
    DSLCallError where `args` is no list or tuple, or `schedules` below 1.
    """
    if not isinstance(args, list | tuple):
        raise DSLCallError(
            f"explore takes the arguments as a tuple, got {with_article(type(args))}",
            hint="explore(f, (x,)) for a function of one argument",
        )
    if schedules < 1:
        raise DSLCallError(f"schedules is {schedules}", hint="try one schedule at least")
    failures = []
    for seed in range(1, schedules + 1):
        own = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        token = _seed.set(seed)
        try:
            with simulated():
                function(*own)
        except SimulationError as error:
            error.add_note(f"CUTE_DSL_SCHEDULE_SEED={seed} repeats this schedule")
            failures.append(Failure(seed, error))
        finally:
            _seed.reset(token)
    return failures
