"""The hint of the error about an attribute that tensors do not have."""

from __future__ import annotations

import functools
from typing import Any

from basedsl import closest_name
from basedsl_cute.hardware.other_names import OF_TENSORS


@functools.lru_cache(maxsize=64)  # a search takes 0.1 ms, and `hasattr` asks for one each time
def attribute_hint(kind: Any, name: str) -> str:
    """Return what to write instead of the attribute `name` of an object of the class `kind`."""
    near = closest_name(name, [one for one in dir(kind) if not one.startswith("_")])
    if near is not None and name not in OF_TENSORS:
        return f"did you mean x.{near}?"
    return OF_TENSORS.get(name, "a tensor has x.shape, x.stride, x.layout, x.iterator, x.load()")
