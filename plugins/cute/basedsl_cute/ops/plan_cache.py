"""Plans of calls: what was found for arrays of a kind, so that later calls look it up."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import basedsl_cute as cute
from basedsl_cute.hardware.targets import ENVIRONMENT_VARIABLE

MOST_PLANS = 4096

T = TypeVar("T")


def asked_target() -> str | None:
    """Return the target that the environment asks for. With the arrays' device it tells targets
    apart, and is a tenth of asking the driver.
    """
    return os.environ.get(ENVIRONMENT_VARIABLE)


class PlanCache(dict[Any, T]):
    """Plans by the keys of their arguments, see `ArrayLibrary.key`. It is emptied where more than
    `MOST_PLANS` would be kept.
    """

    def keep(self, key: Any, plan: T) -> T:
        """Keep a plan, and return it."""
        if len(self) >= MOST_PLANS:
            self.clear()
        self[key] = plan
        return plan


_statics: PlanCache[Any] = PlanCache()


def same_static(x: T) -> T:
    """Return the first object that was given and equals `x`, which is hashable: native calls know
    static arguments by identity.
    """
    found: T = _statics.get((type(x), x), x)
    return found if found is not x else _statics.keep((type(x), x), x)


def launch_plan(plan: Any, launch: Any, given: Any, static: Any, stream: int) -> None:
    """Launch kernels for the arrays and numbers `given`; `plan.compiled` is `launch` compiled for
    the first of them, with the static arguments that follow them.
    """
    if plan.compiled is None:
        plan.compiled = cute.compile(launch, *given, *static, stream)
    plan.compiled(*given, stream)
