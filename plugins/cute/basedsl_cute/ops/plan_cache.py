"""Plans of calls: what was found for arrays of a kind, so that later calls look it up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import basedsl_cute as cute
from basedsl_cute.dsl.cute import CUTE

MOST_PLANS = 4096

T = TypeVar("T")


# A number for the options that the environment sets now, the target among them, as a part of a key:
# plans that were made with others are not taken.
asked_options = CUTE.options_number


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


class Repeatable:
    """A plan whose launch is repeated by native code from its second call on, at other addresses.

    `repeat` gets a tuple of those of all arrays in the order of the launch's arguments, those in
    tuples too, and then the number of its `stream`. It is None before, and on the simulator, which
    looks at arrays. Nothing is looked at then: a plan's key promises that all else is the same.
    """

    repeat: Callable[[tuple[int, ...]], Any] | None = None
    _calls = 0

    def launch(self, function: Any, given: tuple[Any, ...], *, may_repeat: bool = True) -> None:
        """Call `function(*given)`; unless `may_repeat` is False, later calls may be `repeat`."""
        function(*given)
        self._calls += 1
        if self._calls == 2 and may_repeat:
            self.repeat = repeated(function, given)


def repeated(function: Any, given: tuple[Any, ...]) -> Callable[[tuple[int, ...]], Any] | None:
    """Return the call `function(*given)`, which has been made, as `Repeatable.repeat`."""
    return CUTE.repeated(function, *given, numbers=("stream",))


def launch_plan(plan: Any, launch: Any, given: Any, static: Any, stream: int) -> None:
    """Launch kernels for the arrays and numbers `given`; `plan.compiled` is `launch` compiled for
    the first of them, with the static arguments that follow them.
    """
    if plan.compiled is None:
        plan.compiled = cute.compile(launch, *given, *static, stream)
    plan.compiled(*given, stream)
