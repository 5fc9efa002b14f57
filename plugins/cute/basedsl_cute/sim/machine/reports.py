"""Reports of checks: an error, or a warning where the options of the launch say so."""

from __future__ import annotations

import warnings
from typing import Any

from basedsl_cute.sim.errors import SimulationError, SimulationWarning


def report(launch: Any, check: str, error: SimulationError) -> None:
    """Raise what a check has found, or warn of it once for each place, by the check's level."""
    level = launch.options.level(check)
    if level == "error":
        raise error
    if level == "off":
        return
    place = (check, error.site)
    if place not in launch.warned:
        launch.warned.add(place)
        warnings.warn(SimulationWarning(str(error)), stacklevel=2)
