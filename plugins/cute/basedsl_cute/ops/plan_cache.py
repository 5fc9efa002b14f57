"""Plans of calls: what was found for arrays of a kind, so that later calls look it up."""

from __future__ import annotations

import os
from typing import Any, TypeVar

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
