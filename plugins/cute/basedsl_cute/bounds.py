"""Coordinates that host code uses lie in the shape of the tensor, or it stops with an IndexError.

A coordinate of a view (a tile, a slice) is compared with the view's own shape. Negative ones are
errors too: a coordinate counts from the start.
"""

from __future__ import annotations

from typing import Any

from basedsl.metastage import Trace, assert_showing
from basedsl.numeric import Boolean, Int64, Numeric, Uint64, is_dynamic
from basedsl_cute import algebra

MESSAGE = "IndexError: coordinate {0} is out of range for an extent of {1}"


def check_coordinate(trace: Trace, coord: Any, shape: Any) -> None:
    """Emit the checks of `coord`, a coordinate of `shape`; None in it stands for a whole mode."""
    if coord is None:
        return
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            raise algebra.LayoutError(f"coordinate {coord} does not fit the shape {shape}")
        for part, extent in zip(coord, shape, strict=True):
            check_coordinate(trace, part, extent)
        return
    extent = algebra.size(shape)
    if is_dynamic(coord) or is_dynamic(extent):
        # A negative number is a very large one without a sign.
        inside = _unsigned(coord) < _unsigned(extent)
    elif 0 <= coord < extent:
        return
    else:
        inside = Boolean(False)
    assert_showing(trace, inside, MESSAGE, coord, extent)


def _unsigned(number: Any) -> Any:
    wide = number.to(Int64) if isinstance(number, Numeric) else Int64(number)
    return wide.to(Uint64)
