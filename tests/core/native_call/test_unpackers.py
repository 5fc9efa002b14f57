"""NumPy arrays in native calls: what an unpacker of arrays takes, and what it stores."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from basedsl.arrays.array_record import DLTensor
from basedsl.binding import Unpacker
from basedsl.native_call import object_layout, unpackers
from basedsl.native_call.unpackers import Leaf

_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)


def taken(unpacker: Unpacker | None, value: Any, slots: int = 5) -> list[int] | None:
    """The slots after unpacking `value`, or None if it was declined."""
    assert unpacker is not None
    stored = (ctypes.c_int64 * slots)()
    data = (ctypes.c_int64 * max(len(unpacker.data), 1))(*unpacker.data)
    function = _FUNCTION(unpacker.address)
    ok = function(value, ctypes.addressof(stored), ctypes.addressof(data))
    return list(stored) if ok else None


def matrix(**options: Any) -> Unpacker | None:
    leaves = [Leaf(False, 0), Leaf(False, 1), Leaf(True, 0), Leaf(True, 1)]
    return unpackers.array_unpacker("float32", 2, leaves, **options)


class Sub(np.ndarray):
    """Not exactly an array."""


def test_address_shape_and_strides() -> None:
    array = np.zeros((3, 4), np.float32)
    address = array.ctypes.data
    assert taken(matrix(), array) == [address, 3, 4, 16, 4]
    assert taken(matrix(), array.T) == [address, 4, 3, 4, 16]
    assert taken(matrix(), array[::-1, ::2]) == [array[::-1].ctypes.data, 3, 2, -16, 8]
    assert taken(matrix(), np.zeros((0, 4), np.float32)) is not None


def read_only() -> Any:
    array = np.zeros((2, 2), np.float32)
    array.flags.writeable = False
    return array


def unaligned() -> Any:
    return np.zeros(17, np.uint8)[1:].view(np.float32).reshape(2, 2)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((2, 2), np.float64),
        np.zeros((2, 2), np.int32),
        np.zeros((2, 2), ">f4"),
        np.zeros(4, np.float32),
        np.zeros((2, 2, 1), np.float32),
        np.zeros((2, 2), np.float32).view(Sub),
        read_only(),
        unaligned(),
        np.float32(1),
        [[1.0]],
        None,
    ],
    ids=str,
)
def test_what_is_declined(value: Any) -> None:
    assert taken(matrix(), value) is None


def test_a_read_only_array_where_nothing_is_written() -> None:
    assert taken(matrix(writeable=False), read_only()) is not None


def test_alignment() -> None:
    array = np.zeros(64, np.float32)
    start = (-array.ctypes.data // 4) % 16
    aligned, off = array[start : start + 4], array[start + 1 : start + 5]
    wide = unpackers.array_unpacker("float32", 1, [], align=64)
    assert taken(wide, aligned) is not None
    assert taken(wide, off) is None


def test_known_leaves_and_narrow_ones() -> None:
    leaves = [
        Leaf(False, 0, bytes=4),
        Leaf(False, 1, bytes=0, known=4),
        Leaf(True, 0, bytes=4, divisor=4),
        Leaf(True, 1, bytes=0, known=1, divisor=4),
    ]
    unpacker = unpackers.array_unpacker("float32", 2, leaves)
    array = np.zeros((3, 4), np.float32)
    assert taken(unpacker, array) == [array.ctypes.data, 3, 4, 0, 0]
    assert taken(unpacker, np.zeros((3, 5), np.float32)) is None
    assert taken(unpacker, np.zeros((4, 4), np.float32).T) is None
    huge = np.lib.stride_tricks.as_strided(array, (2**31, 4), (0, 4))
    assert taken(unpacker, huge) is None
    odd = np.lib.stride_tricks.as_strided(np.zeros(99, np.uint8).view("V1"), (3, 4), (6, 4))
    assert taken(unpacker, odd) is None


class Foreign:
    """A tensor of another library: what its DLTensor says."""

    def __init__(self, **fields: Any) -> None:
        self.shape, self.strides = (ctypes.c_int64 * 2)(3, 4), (ctypes.c_int64 * 2)(8, 2)
        self.fields = {
            "data": 4096,
            "device_type": 2,
            "device_id": 1,
            "ndim": 2,
            "code": 2,
            "bits": 32,
            "lanes": 1,
            "shape": ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)),
            "strides": ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64)),
            "byte_offset": 64,
        } | fields


@ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.POINTER(DLTensor))
def borrow(value: Any, out: Any) -> int:
    if not value.fields:
        return -1
    for name, field in value.fields.items():
        setattr(out.contents, name, field)
    return 0


def foreign(align: int = 64) -> Unpacker:
    function = ctypes.cast(borrow, ctypes.c_void_p).value
    assert function is not None
    leaves = [Leaf(False, 0, bytes=4), Leaf(False, 1), Leaf(True, 0), Leaf(True, 1, known=2)]
    return unpackers.tensor_unpacker(Foreign, function, (2, 1), (2, 32, 1), 2, leaves, align=align)


def test_tensors_of_other_libraries() -> None:
    assert taken(foreign(), Foreign()) == [4160, 3, 4, 8, 2]
    assert taken(foreign(), Foreign(byte_offset=0)) == [4096, 3, 4, 8, 2]


class Derived(Foreign):
    """Not exactly a Foreign."""


@pytest.mark.parametrize(
    "value",
    [
        Foreign(device_type=1),
        Foreign(device_id=0),
        Foreign(code=1),
        Foreign(bits=16),
        Foreign(lanes=4),
        Foreign(ndim=1),
        Foreign(byte_offset=32),
        Foreign(strides=None),
        Derived(),
        3,
    ],
    ids=range(10),
)
def test_tensors_that_are_declined(value: Any) -> None:
    assert taken(foreign(), value) is None


def test_a_tensor_that_cannot_be_described_is_declined() -> None:
    value = Foreign()
    value.fields = {}
    assert taken(foreign(), value) is None


def with_table(major: int, function: int, name: bytes) -> tuple[type, Any]:
    """A class that offers DLPack's exchange API, and what must stay alive for it."""
    table = (ctypes.c_uint64 * 7)(major | 3 << 32, 0, 1, 2, 3, function, 4)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    capsule = new(ctypes.addressof(table), name, None)
    return type("Offering", (), {"__dlpack_c_exchange_api__": capsule}), (table, name)


def test_the_function_that_a_library_offers() -> None:
    name = b"dlpack_exchange_api"
    kind, _kept = with_table(1, 4096, name)
    assert unpackers.dlpack_exchange_function(kind) == 4096
    newer, _kept_too = with_table(2, 4096, name)
    assert unpackers.dlpack_exchange_function(newer) is None
    other, _kept_as_well = with_table(1, 4096, b"something else")
    assert unpackers.dlpack_exchange_function(other) is None
    none, _kept_again = with_table(1, 0, name)
    assert unpackers.dlpack_exchange_function(none) is None
    assert unpackers.dlpack_exchange_function(int) is None


def test_a_python_callable_decides() -> None:
    unpacker = unpackers.python_unpacker(lambda x: bytes([x] * 8) if x else None, 8)
    assert taken(unpacker, 1) == [0x0101010101010101, 0, 0, 0, 0]
    assert taken(unpacker, 0) is None
    assert taken(unpacker, "an error in it") is None
    assert taken(unpackers.python_unpacker(lambda x: b"short", 8), 1) is None
    assert taken(unpackers.python_unpacker(lambda x: bytearray(8), 8), 1) is None


def test_where_arrays_look_otherwise_there_is_no_unpacker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_layout, "arrays_supported", lambda: False)
    assert matrix() is None


@pytest.mark.parametrize(("width", "signed"), [(4, True), (128, True), (128, False)])
def test_odd_integers_have_none(width: int, signed: bool) -> None:
    assert unpackers.integer_unpacker(width, signed) is None


def test_half_floats_have_none() -> None:
    assert unpackers.float_unpacker(16) is None
