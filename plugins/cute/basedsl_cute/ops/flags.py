"""Options that are true or false."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl import DSLTypeError


def flag(operation: str, name: str, given: Any) -> bool:
    """The truth that an option is, Python's or NumPy's. DSLTypeError for anything else: a text like
    "no" would count as true.
    """
    if given is True or given is False:
        return given
    if isinstance(given, np.bool_):
        return bool(given)
    raise DSLTypeError(f"{operation}: {name}={given!r}", hint="True or False")
