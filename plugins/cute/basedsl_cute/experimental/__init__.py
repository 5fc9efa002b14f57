"""`experimental`: of CuTe's experimental layers, the wrappers of PTX instructions (`primitives`)
and a profiler's ranges (`iket`).

Names of `cute.experimental`, which manages memory, and of `experimental.cuda` can be imported;
using one is an error. `task_scheduling` cannot be imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from basedsl_cute.hardware.unsupported import unsupported_names

_unsupported = unsupported_names("basedsl_cute.experimental")


def _find(name: str) -> Any:
    if name in ("primitives", "cuda", "iket"):
        return importlib.import_module(f"{__name__}.{name}")
    return _unsupported(name)


if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = _find
