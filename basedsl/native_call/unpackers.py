"""Native unpackers of numbers, static values, NumPy arrays and DLPack tensors.

An unpacker checks a Python object and writes its C storage into 8-byte slots. An argument type
returns one from its methods `unpacker` and `accepting_unpacker` (`basedsl.binding.ArgumentType`).
The functions below make unpackers; a plugin may also make an `Unpacker` of its own C function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl.binding.unpacker import Unpacker
from basedsl.native_call import object_layout
from basedsl.native_call.runtime import unpacker

_WRITEABLE, _ALIGNED = 0x0400, 0x0100  # NumPy C API: NPY_ARRAY_WRITEABLE, NPY_ARRAY_ALIGNED


@dataclass(frozen=True)
class Leaf:
    """A number of an array's shape or, with `is_stride`, of its strides: that of the mode `axis`.
    It is stored in `bytes` bytes (4 or 8; 0 for not), and required to be `known` if that is not
    None. A stride counts in items of `divisor` bytes.
    """

    is_stride: bool
    axis: int
    bytes: int = 8
    known: int | None = None
    divisor: int = 1


def integer_unpacker(width: int, signed: bool) -> Unpacker | None:
    """Return an unpacker of `int` (no subclass) in the range of a type of `width` bits; None for a
    width that `call.c` does not know.
    """
    if width == 64 and not signed:
        return Unpacker(unpacker("uint64"))
    if width not in (8, 16, 32, 64):
        return None
    least = -(2 ** (width - 1)) if signed else 0
    most = 2 ** (width - 1) - 1 if signed else 2**width - 1
    return Unpacker(unpacker("int"), (width // 8, least, most))


def float_unpacker(width: int, *, or_int: bool = False) -> Unpacker | None:
    """Return an unpacker of `float` (no subclass) and, with `or_int`, of `int`; None for a width
    other than 32 and 64 bits.
    """
    if width not in (32, 64):
        return None
    return Unpacker(unpacker("float"), (width // 8, int(or_int)))


def boolean_unpacker() -> Unpacker:
    """Return an unpacker of True and False."""
    return Unpacker(unpacker("bool"))


def static_unpacker(value: Any) -> Unpacker:
    """Return an unpacker that accepts a static value only: an equal int or string, or the same
    object.
    """
    if type(value) is int and -(2**63) <= value < 2**63:
        return Unpacker(unpacker("equal_int"), (value,))
    if type(value) is str:
        return Unpacker(unpacker("equal_text"), (id(value),), (value,))
    return Unpacker(unpacker("same"), (id(value),), (value,))


def array_unpacker(
    dtype: Any,
    ndim: int,
    leaves: Sequence[Leaf],
    *,
    writeable: bool = True,
    align: int = 1,
) -> Unpacker | None:
    """Return an unpacker of NumPy arrays (no subclass): it writes the address of the data, then
    `leaves`, each into a slot of its own. Arrays of another `dtype` (NumPy's, or what `np.dtype`
    takes) or number of axes (`ndim`), and those not aligned to `align` bytes, are rejected, and
    read-only ones if `writeable`. None if `arrays_supported()` is False.
    """
    import numpy as np

    if not object_layout.arrays_supported():
        return None
    dtype = np.dtype(dtype)
    flags = _ALIGNED | (_WRITEABLE if writeable else 0)
    data = (id(np.ndarray), id(dtype), ndim, flags, align, *_leaves(leaves))
    return Unpacker(unpacker("array"), data, (dtype,))


def apart_unpacker(
    inner: Unpacker, itemsize: int, stretches: Sequence[tuple[int, int]]
) -> Unpacker:
    """Return an unpacker of the NumPy arrays that `inner` takes, with items of `itemsize` bytes,
    and that share no memory with some stretches of it: pairs of a first address and the end.
    """
    import numpy as np

    words = (ctypes.c_int64 * max(len(inner.data), 1))(*inner.data)
    head = (inner.address, ctypes.addressof(words), id(np.ndarray), itemsize, len(stretches))
    flat = [address for stretch in stretches for address in stretch]
    return Unpacker(unpacker("apart"), (*head, *flat), (inner, words))


def tensor_unpacker(
    kind: type,
    function: int,
    device: tuple[int, int],
    dtype: tuple[int, int, int],
    ndim: int,
    leaves: Sequence[Leaf],
    *,
    align: int = 1,
) -> Unpacker:
    """Return an unpacker of tensors of the class `kind` (no subclass), which DLPack describes: it
    writes the address of the data, then `leaves`, each into a slot of its own.

    `function` is the address of an `int (void *object, DLTensor *out)` that borrows, as in
    DLPack's exchange API (`dltensor_from_py_object_no_sync`); `device` is type and number, `dtype`
    code, bits and lanes. Strides count in items. Nothing waits for a stream.
    """
    (place, number), (code, bits, lanes) = device, dtype
    words = (number << 32 | place, lanes << 16 | bits << 8 | code)
    data = (id(kind), function, *words, ndim, align, *_leaves(leaves))
    return Unpacker(unpacker("tensor"), data, (kind,))


def dlpack_exchange_function(kind: type) -> int | None:
    """Return the address of the C function that borrows a `DLTensor` of objects of the class
    `kind`, for `tensor_unpacker`: the fourth of DLPack's exchange API (dlpack.h 1.2). None if the
    class offers no such API.
    """
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    is_valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes = pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer.restype = ctypes.c_void_p
    if capsule is None or not is_valid(capsule, b"dlpack_exchange_api"):
        return None
    table = pointer(capsule, b"dlpack_exchange_api")
    major = ctypes.c_uint32.from_address(table).value
    header = 16  # version, and the address of an older table
    return ctypes.c_void_p.from_address(table + header + 24).value if major == 1 else None


def _leaves(leaves: Sequence[Leaf]) -> list[int]:
    data = [len(leaves)]
    for leaf in leaves:
        known = leaf.known is not None
        data += [int(leaf.is_stride), leaf.axis, leaf.divisor, leaf.bytes, int(known)]
        data.append(leaf.known if leaf.known is not None else 0)
    return data


def python_unpacker(pack: Callable[[Any], bytes | None], size: int) -> Unpacker:
    """Return an unpacker that calls `pack(value)`: it returns `size` bytes of slots, or None to
    reject the value.
    """
    return Unpacker(unpacker("python"), (id(pack), size), (pack,))
