"""Coordinates of tensors, as users write them between brackets."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Numeric, with_article
from basedsl_cute.tensors.index_arithmetic import as_int


def as_index(coord: Any) -> Any:
    """The coordinate between brackets; DSLTypeError as `as_coordinate` raises, and for a list,
    which would gather elements in NumPy.
    """
    if _has_list(coord):
        raise DSLTypeError(
            "a tensor is indexed with a list",
            hint="a tuple is the coordinate of one element: x[i, j], x[tuple(coord)]; elements "
            "at several places are read one by one, [x[i] for i in places]",
        )
    return as_coordinate(coord)


def as_coordinate(coord: Any) -> Any:
    """The coordinate with known integers as Python ints; DSLTypeError unless it consists of
    integers, tuples and None.
    """
    if isinstance(coord, tuple | list):
        return tuple(as_coordinate(part) for part in coord)
    if coord is None or type(coord) is int:
        return coord
    if isinstance(coord, Numeric) and type(coord).is_integer and type(coord).width > 1:
        return as_int(coord)
    is_array = getattr(coord, "shape", ())  # of more than one number
    if hasattr(coord, "__index__") and not isinstance(coord, bool | Numeric) and not is_array:
        return int(coord)
    raise DSLTypeError(
        f"a tensor is indexed with {with_article(type(coord))}",
        hint=_coordinate_hint(coord),
    )


def as_thread(thr_idx: Any, threads: int) -> Any:
    """The number of a thread for `get_slice`; DSLTypeError unless it is below `threads`."""
    if thr_idx is None or isinstance(thr_idx, tuple | list):
        raise DSLTypeError(
            "get_slice takes the number of a thread, got "
            + ("None" if thr_idx is None else "a tuple"),
            hint="tid, _, _ = cute.arch.thread_idx()",
        )
    number = as_coordinate(thr_idx)
    if type(number) is int and not 0 <= number < threads:
        raise DSLTypeError(f"get_slice({number}) of {threads} threads")
    return number


def _has_list(coord: Any) -> bool:
    return isinstance(coord, list) or (isinstance(coord, tuple) and any(map(_has_list, coord)))


def _coordinate_hint(coord: Any) -> str:
    if isinstance(coord, slice):
        return "x[None, i] keeps a whole mode, cute.local_tile(x, (n,), (i,)) takes a tile of it"
    if isinstance(coord, float) or (isinstance(coord, Numeric) and type(coord).is_float):
        return "divide with // for a whole number, or convert with .to(Int32)"
    return "coordinates are integers, tuples of them, or None to keep a mode"
