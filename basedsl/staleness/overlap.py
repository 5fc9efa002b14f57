"""Arguments that are also what the code knows otherwise: a global, a variable of a closure.

Compiled code holds the contents of such an object as they were while tracing. If the same array is
also an argument, a store into the argument changes it behind the code's back.
"""

from __future__ import annotations

import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from basedsl.binding import TreeArgument
from basedsl.errors import DSLError
from basedsl.location import span_of_function
from basedsl.native_call import object_layout
from basedsl.native_call.conditions import WORD, Row
from basedsl.pytree import flatten
from basedsl.staleness.guards import Guards

_BUFFERS = (array.array, bytearray, memoryview)


def as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Return a NumPy array over the memory of `value`; None for what has none on the CPU."""
    cls: Any = type(value)
    if issubclass(cls, np.ndarray):
        return value  # type: ignore[no-any-return]
    try:
        if issubclass(cls, _BUFFERS):
            return np.frombuffer(value, np.uint8)
        if hasattr(cls, "__dlpack__"):
            return np.from_dlpack(value)
    except Exception:  # a tensor of a GPU, or one that its library does not share
        return None
    return None


def arrays_of(values: Iterable[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the arrays among arguments and their parts."""
    leaves = [leaf for value in values for leaf in flatten(value)[1]]
    return [found for leaf in leaves if (found := as_array(leaf)) is not None]


def stretch_of(memory: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return the first address of an array's memory, and its end."""
    first = memory.__array_interface__["data"][0]
    reaches = [(n - 1) * s for n, s in zip(memory.shape, memory.strides, strict=True)]
    if memory.size == 0:
        return first, first
    end = first + memory.itemsize + sum(reach for reach in reaches if reach > 0)
    return first + sum(reach for reach in reaches if reach < 0), end


def captured_stretches(guards: Guards) -> tuple[list[tuple[int, int]], list[Row]] | None:
    """Return the memory of the captured arrays, and conditions that hold while it is theirs; None
    where one is no NumPy array, whose memory may move.
    """
    stretches, rows = [], []
    for _, _, held in guards.arrays:
        if not isinstance(held, np.ndarray) or not object_layout.arrays_supported():
            return None
        stretches.append(stretch_of(held))
        at = id(held) + object_layout.ARRAY_DATA
        rows.append((WORD, at, 0, object_layout.word(at)))
    return stretches, rows


class Overlap:
    """The captured arrays that share memory with arguments of one call, while it runs."""

    def __init__(self, guards: Guards, values: Sequence[Any]) -> None:
        arguments = arrays_of(values)
        self._held = [
            (path, guard)
            for path, guard, held in guards.arrays
            if (memory := as_array(held)) is not None
            and any(np.may_share_memory(memory, one) for one in arguments)
        ]

    @property
    def is_empty(self) -> bool:
        """True if no captured array shares memory with an argument."""
        return not self._held

    def check(self, fn: Any) -> None:
        """Raise a DSLError if the call of `fn` has changed one of them."""
        for path, guard in self._held:
            if not guard.holds():
                raise DSLError(
                    f"'{path}' is an argument, too, and the call has changed it",
                    span_of_function(fn),
                    notes=((f"compiled code has the contents of '{path}' from before", None),),
                    hint=f"use the argument in place of '{path}', or pass a copy",
                )


def check_shared_objects(
    fn: Any, values: Sequence[Any], arguments: Sequence[Any], before: Guards
) -> None:
    """Raise a DSLError if tracing `fn` has changed an object that is also an argument: compiled
    code passes its parts by value.
    """
    places: dict[int, Any] = {}
    for value, argument in zip(values, arguments, strict=True):
        if isinstance(argument, TreeArgument):
            flatten(value, places)
    if not places:
        return
    for key, guard in before.items():
        if key[1:2] and key[1] in places and not guard.holds():
            raise DSLError(
                f"'{before.path(key)}' is an argument, too, and is changed while compiling",
                span_of_function(fn),
                hint="change it where the function is called, or build a new object",
            )
