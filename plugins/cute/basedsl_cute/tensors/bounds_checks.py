"""Coordinates that host code uses lie in the shape of the tensor, or it stops with an IndexError;
known coordinates of vectors and registers lie in their shapes, or nothing is compiled.

A coordinate of a view (a tile, a slice) is compared with the view's own shape. Negative ones are
errors too: a coordinate counts from the start.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.metastage import assert_showing
from basedsl.numeric import Boolean, Int64, Numeric, Uint64, is_dynamic
from basedsl.tracing import Trace
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


def check_known(coord: Any, part: Any, what: str, shape: Any) -> None:
    """DSLTypeError for a known coordinate beyond `part` of the `shape` of `what`."""
    if isinstance(coord, tuple) and isinstance(part, tuple):
        for one, extent in zip(coord, part, strict=False):
            check_known(one, extent, what, shape)
    elif type(coord) is int and not 0 <= coord < algebra.size(part):
        raise DSLTypeError(
            f"coordinate {coord} is out of range for an extent of {algebra.size(part)}, in {what} "
            f"of shape {shape}",
            hint="coordinates count from 0; a negative one is no distance from the end",
        )


def _unsigned(number: Any) -> Any:
    wide = number.to(Int64) if isinstance(number, Numeric) else Int64(number)
    return wide.to(Uint64)
