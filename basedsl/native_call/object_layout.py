"""The memory layout of CPython's and NumPy's objects, determined by experiments on sample objects.

The native call reads a few words of objects directly. Each place is found or confirmed here on
objects made for it; where something is not as expected, it is None and the check stays in Python.
Nothing here writes to an object.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import sysconfig
import types
from typing import Any

import numpy as np

WORD = 8


def word(address: int) -> int:
    """The 8 bytes at `address`."""
    return word_at(address).value


def word_at(address: int) -> ctypes.c_uint64:
    """The place of 8 bytes, whose `value` is what they are then."""
    return ctypes.c_uint64.from_address(address)


@functools.cache
def supported() -> bool:
    """Return True if `call.c` works with this interpreter: 64-bit little-endian CPython with a
    GIL, whose objects have their class at offset 8.
    """
    if sys.implementation.name != "cpython" or sys.maxsize != 2**63 - 1:
        return False
    if sys.byteorder != "little" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    samples: tuple[Any, ...] = (1, 1.5, "a", (), b"", True, None, np.zeros(1))
    return all(word(id(one) + WORD) == id(type(one)) for one in samples)


ARRAY_DATA = 16  # of a NumPy array's struct: the address of its data


@functools.cache
def arrays_supported() -> bool:
    """Return True if the C struct of NumPy arrays has the fields where `call.c` reads them."""
    array = np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::2]
    at = id(array)
    shape, strides = word(at + 32), word(at + 40)
    return (
        word(at + ARRAY_DATA) == array.__array_interface__["data"][0]
        and ctypes.c_int32.from_address(at + 24).value == 2
        and (word(shape), word(shape + 8)) == array.shape
        and (word(strides), word(strides + 8)) == array.strides
        and word(at + 56) == id(array.dtype)
        and ctypes.c_int32.from_address(at + 64).value & 0xFFFF == array.flags.num
    )


def _find(owner: Any, wanted: Any) -> int | None:
    """The offset of the pointer to `wanted` in `owner`, if there is exactly one."""
    size = owner.__sizeof__()
    found = [at for at in range(2 * WORD, size, WORD) if word(id(owner) + at) == id(wanted)]
    return found[0] if len(found) == 1 else None


@functools.cache
def cell_offset() -> int | None:
    """Return the byte offset of a closure cell's content; None if it was not found."""
    return _find(types.CellType(marker := object()), marker)


@functools.cache
def function_offsets() -> dict[str, int]:
    """Return the byte offsets of a function's `__code__`, `__defaults__` and `__kwdefaults__`,
    those that were found.
    """

    def sample(a: int = 1, *, b: int = 2) -> None:
        """The sample, whose memory is read below."""

    found = {
        name: _find(sample, getattr(sample, name))
        for name in ("__code__", "__defaults__", "__kwdefaults__")
    }
    return {name: at for name, at in found.items() if at is not None}


@functools.cache
def dict_version_offset() -> int | None:
    """Return the byte offset of a dict's version number, which each change of it changes; None if
    there is none. CPython 3.11 to 3.13 have one.
    """
    table = {"a": 0}
    at, seen = 3 * WORD, set()
    for i in range(200):
        table["a"] = i + 1000
        seen.add(word(id(table) + at))
    before = word(id(table) + at)
    steady = table["a"] and table.get("b") is None and word(id(table) + at) == before
    del table["a"]
    return at if len(seen) == 200 and steady and word(id(table) + at) != before else None


@functools.cache
def attributes_version_offset() -> int | None:
    """Return `dict_version_offset` if assigning an attribute of an ordinary object changes the
    version of its `__dict__` too; None if not, as its values may be stored outside of the dict.
    """

    class Sample:
        def __init__(self) -> None:
            self.a = 0

    sample = Sample()
    attributes, seen = vars(sample), set()
    at = dict_version_offset()
    for i in range(200):  # long enough for the interpreter to specialise the store
        sample.a = i + 1000
        seen.add(word(id(attributes) + (at or 0)))
    return at if len(seen) == 200 else None


@functools.cache
def type_version_offset() -> int | None:
    """Return the byte offset of a class's version number, which each change of it or its bases
    changes; None if there is none. The number is 0 before the first look-up of an attribute.
    """

    class Base:
        mark = 0

    class Sample(Base):
        pass

    at = 48 * WORD
    seen = set()
    for i in range(20):
        Base.mark = i
        assert Sample.mark == i  # a look-up gives the class its number
        number = ctypes.c_uint32.from_address(id(Sample) + at).value
        if number == 0 or number != ctypes.c_uint32.from_address(id(Sample) + at).value:
            return None
        seen.add(number)
    return at if len(seen) == 20 else None


def type_version(cls: type) -> int:
    """Return the version number of a class (`type_version_offset`); 0 if it has none."""
    at = type_version_offset()
    if at is None:
        return 0
    type.__getattribute__(cls, "__init__")  # a look-up gives the class its number
    return ctypes.c_uint32.from_address(id(cls) + at).value


def environment_table() -> Any:
    """The dict behind `os.environ`, or None."""
    table = getattr(os.environ, "_data", None)
    return table if type(table) is dict else None
