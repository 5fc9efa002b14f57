"""Bounds checks of coordinates: at run time in host code (IndexError), while compiling for known
coordinates of vectors and registers (DSLTypeError).

The coordinate of a view (a tile, a slice) is compared with the view's own shape. Negative
coordinates are errors: they do not count from the end.
"""

from __future__ import annotations

from typing import Any

from basedsl import (
    Boolean,
    DSLTypeError,
    Int32,
    Int64,
    Numeric,
    Trace,
    Uint32,
    Uint64,
    assert_showing,
    is_dynamic,
)
from basedsl_cute import algebra

MESSAGE = "IndexError: coordinate {0} is out of range for an extent of {1}"


def check_coordinate(trace: Trace, coord: Any, shape: Any) -> None:
    """Emit run-time checks that `coord` lies in `shape`; None in it stands for a whole mode."""
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
        # As an unsigned number, a negative one is very large.
        inside = _unsigned(coord) < _unsigned(extent)
    elif 0 <= coord < extent:
        return
    else:
        inside = Boolean(False)
    assert_showing(trace, inside, MESSAGE, coord, extent)


def check_element(trace: Trace, coord: Any, shape: Any) -> None:
    """Emit assertions of a kernel that `coord`, an element's, lies in `shape`, mode by mode."""
    modes = coord if isinstance(coord, tuple) else (coord,)
    extents = shape if isinstance(coord, tuple) else (shape,)
    for mode, (part, extent) in enumerate(zip(modes, extents, strict=True)):
        if isinstance(part, tuple):
            check_element(trace, part, extent)
            continue
        size = algebra.size(extent)
        number = mode if isinstance(coord, tuple) and len(modes) > 1 else None
        check_mode(trace, part, size, "its only mode" if number is None else f"mode {number}")


def check_mode(trace: Trace, coord: Any, size: Any, which: str) -> None:
    """Emit an assertion of a kernel that `coord` is below the extent `size`; errors call the mode
    `which`.
    """
    if is_dynamic(coord) or is_dynamic(size):
        inside = _as_unsigned(coord, size) < _as_unsigned(size, coord)
    elif 0 <= coord < size:
        return
    else:
        inside = Boolean(False)
    known = [str(n) if isinstance(n, int) else "?" for n in (coord, size)]
    text = f"CoordinateError: {which}: coordinate {known[0]}: extent {known[1]}"
    trace.emitter.assert_(inside.ir_value(), text, trace.loc())


def _as_unsigned(number: Any, other: Any) -> Any:
    """The number as an unsigned one of 32 bits, or of 64 if one of the two is wider."""
    widths = [n.width if isinstance(n, Numeric) else 32 for n in (number, other)]
    signed, unsigned = (Int64, Uint64) if max(widths) > 32 else (Int32, Uint32)
    wide = number.to(signed) if isinstance(number, Numeric) else signed(number)
    return wide.to(unsigned)


def check_sign(coord: Any) -> None:
    """Raise DSLTypeError for a coordinate that is known to be negative."""
    for part in coord if isinstance(coord, tuple) else (coord,):
        if isinstance(part, tuple):
            check_sign(part)
        elif type(part) is int and part < 0:
            raise DSLTypeError(
                f"coordinate {part} is negative: it does not count from the end",
                hint=f"the last element of mode m is at x.shape[m] - {-part}, "
                f"of a whole tensor at cute.size(x) - {-part}",
            )


def check_known(coord: Any, part: Any, what: str, shape: Any) -> None:
    """Raise DSLTypeError for a known coordinate outside of `part`, of the `shape` of `what`."""
    if isinstance(coord, tuple) and isinstance(part, tuple):
        for one, extent in zip(coord, part, strict=False):
            check_known(one, extent, what, shape)
    elif type(coord) is int and not 0 <= coord < algebra.size(part):
        raise DSLTypeError(
            f"coordinate {coord} is out of range for an extent of {algebra.size(part)}, in {what} "
            f"of shape {shape}",
            hint="coordinates count from 0; negative ones do not count from the end",
        )


def _unsigned(number: Any) -> Any:
    wide = number.to(Int64) if isinstance(number, Numeric) else Int64(number)
    return wide.to(Uint64)
