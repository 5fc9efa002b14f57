"""NVTX ranges around compilations and runs, for Nsight Systems, by the option `nvtx`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from basedsl.errors import DSLRuntimeError


@contextlib.contextmanager
def nvtx_range(is_wanted: bool, name: str) -> Iterator[None]:
    """Mark a range in profiles. Raises DSLRuntimeError if one is wanted and NVTX for Python is not
    installed.
    """
    if not is_wanted:
        yield
        return
    if importlib.util.find_spec("nvtx") is None:
        raise DSLRuntimeError(
            "the option nvtx needs NVTX for Python, which is not installed",
            hint="pip install nvtx",
        )
    nvtx: Any = importlib.import_module("nvtx")
    with nvtx.annotate(name, domain="basedsl"):
        yield
