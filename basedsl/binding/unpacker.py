"""The record of a native unpacker: how an argument's C storage is made without running Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Unpacker:
    """The native form of an argument type's `pack`: a C function's `address`, the `data` that it
    gets, and the objects that must stay alive for the two (`keep`).

    The function is an `int64_t (PyObject *value, char *slots, const int64_t *data)`. It writes the
    value's storage to `slots`, 8 bytes for each of the type's `storage` (16 for "16s"), and returns
    1; or it returns 0 if the value is not exactly of the type, and raises nothing: the call then
    goes through Python, which finds another variant or the error.
    """

    address: int
    data: tuple[int, ...] = ()
    keep: tuple[Any, ...] = ()
