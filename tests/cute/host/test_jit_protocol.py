"""Objects become arguments by CuTe's protocol: pointers to values, types, and what is seen."""

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl_cute.cutlass_dsl import T, get_c_pointers, get_mlir_types
from basedsl_cute.runtime import from_dlpack


class Span:
    """The object that the traced code sees."""

    def __init__(self, low, high, by):
        self.low, self.high, self.by = low, high, by


class HostSpan:
    def __init__(self, low, high, by=10):
        self._low, self._high = ctypes.c_int32(low), ctypes.c_int64(high)
        self.by = by

    def __c_pointers__(self):
        high = ctypes.cast(ctypes.pointer(self._high), ctypes.c_void_p)
        return [ctypes.addressof(self._low), high]

    def __get_mlir_types__(self):
        return [T.i32(), cute.Int64]

    def __new_from_mlir_values__(self, values):
        return Span(cute.Int32(values[0]), cute.Int64(values[1]), self.by)


class Buffer:
    def __init__(self, array):
        self.array = array


@cute.register_jit_arg_adapter(Buffer)
class BufferAdapter:
    """Passes on the methods of the tensor that it makes."""

    def __init__(self, buffer):
        self._tensor = from_dlpack(buffer.array).mark_layout_dynamic()

    def __c_pointers__(self):
        return self._tensor.__c_pointers__()

    def __get_mlir_types__(self):
        return self._tensor.__get_mlir_types__()

    def __new_from_mlir_values__(self, values):
        return self._tensor.__new_from_mlir_values__(values)


@cute.kernel
def fill(out: cute.Tensor, span):
    i = cute.arch.thread_idx()[0]
    if i >= span.low and i < span.high:
        out[i] = i * span.by


@cute.jit
def filled(out: cute.Tensor, span):
    fill(out, span).launch(grid=1, block=cute.size(out))


def wanted(n, low, high, by=10):
    i = np.arange(n)
    return np.where((i >= low) & (i < high), i * by, 0)


def test_numbers_at_addresses(target):
    for n, low, high, by in ((16, 3, 9, 10), (16, 0, 2, 10), (16, 0, 4, 7)):
        out = np.zeros(n, np.int32)
        filled(out, HostSpan(low, high, by))
        np.testing.assert_array_equal(out, wanted(n, low, high, by))


def test_an_adapter_passes_on_a_tensor(target):
    for n in (16, 24):
        out = np.zeros(n, np.int32)
        filled(Buffer(out), HostSpan(3, 9))
        np.testing.assert_array_equal(out, wanted(n, 3, 9))


def test_compiled_functions_take_other_objects_of_the_kind(target):
    out = np.zeros(16, np.int32)
    compiled = cute.compile(filled, Buffer(out), HostSpan(0, 0))
    compiled(Buffer(out), HostSpan(3, 9))
    np.testing.assert_array_equal(out, wanted(16, 3, 9))
    with pytest.raises(DSLError, match="'span' was compiled as HostSpan"):
        compiled(Buffer(out), HostSpan(3, 9, by=11))
    with pytest.raises(DSLError, match="'span' was compiled as HostSpan"):
        compiled(Buffer(out), 4)


@pytest.mark.parametrize(
    "pointers, types, message",
    [
        ([1, 2], [cute.Int32], "gives 2 pointers and 1 types"),
        ([1], ["i32"], "gives 'i32', which is not a numeric type"),
    ],
)
def test_what_does_not_fit(sim, pointers, types, message):
    class Odd:
        def __c_pointers__(self):
            return pointers

        def __get_mlir_types__(self):
            return types

        def __new_from_mlir_values__(self, values):
            return values

    with pytest.raises(DSLError, match=message):
        filled(np.zeros(4, np.int32), Odd())


class Both(NamedTuple):
    """Two values that are passed, one that is part of the code, and a base that is a pointer."""

    count: cute.Int32
    factor: cute.Constexpr[int] = 2
    out: cute.Tensor | None = None
    base: "cute.Pointer | None" = None

    def _passed(self):
        return [one for one in self if one is not None and type(one) is not int]

    def __c_pointers__(self):
        return [p for one in self._passed() for p in get_c_pointers(one)]

    def __get_mlir_types__(self):
        return [t for one in self._passed() for t in get_mlir_types(one)]

    def __new_from_mlir_values__(self, values):
        count, *rest = values
        out, *base = rest
        return Both(cute.Int32(count), self.factor, out, *base)


@cute.jit
def scaled_count(both):
    @cute.kernel
    def kernel(count: cute.Int32, out: cute.Tensor, base: cute.Pointer, factor: cute.Constexpr):
        i = cute.arch.thread_idx()[0]
        if i < count:
            out[i] = i * factor + (base + i).load()

    kernel(both.count, both.out, both.base, both.factor).launch(grid=1, block=cute.size(both.out))


def test_compiled_functions_take_plain_fields(sim):
    """Arrays, numbers and addresses where the fields have their types; None for a Constexpr."""
    base, out = np.arange(8, dtype=np.int32) * 100, np.zeros(8, np.int32)
    pointer = cute.runtime.make_ptr(cute.Int32, base.ctypes.data, cute.AddressSpace.gmem)
    compiled = cute.compile(scaled_count, Both(cute.Int32(1), 3, from_dlpack(out), pointer))
    compiled(Both(5, None, out, base.ctypes.data))
    np.testing.assert_array_equal(out, [0, 103, 206, 309, 412, 0, 0, 0])
    compiled(Both(cute.Int32(2), 3, from_dlpack(out), pointer))
    for other in (Both(5, 4, out, pointer), Both(5, 3, out[:4], pointer), Both(5, 3, out, None)):
        with pytest.raises(DSLError, match="'both' was compiled as"):
            compiled(other)
    with pytest.raises(DSLError, match="does not fit Int32"):
        compiled(Both(1 << 40, None, out, pointer))


@dataclass
class Numbers:
    """Asks its fields whether they are arguments, as such programs do."""

    out: Any
    count: Any
    left_out: bool = False

    def _passed(self):
        fields = (self.out,) if self.left_out else (self.out, self.count)
        return [one for one in fields if hasattr(one, "__c_pointers__")]

    def __c_pointers__(self):
        return [p for one in self._passed() for p in one.__c_pointers__()]

    def __get_mlir_types__(self):
        return [t for one in self._passed() for t in one.__get_mlir_types__()]

    def __new_from_mlir_values__(self, values):
        made = [
            one.__new_from_mlir_values__([value])
            for one, value in zip(self._passed(), values, strict=True)
        ]
        return Numbers(*(made if len(made) == 2 else (*made, self.count)), self.left_out)


@cute.jit
def first_is_count(numbers):
    numbers.out[0] = numbers.count


@pytest.mark.parametrize("left_out", [False, True])
def test_numeric_values_are_arguments_or_part_of_the_type(sim, left_out):
    """A number that the methods leave out is compiled in: another number is another type."""
    out = np.zeros(1, np.int32)
    for count in (5, 7):
        first_is_count(Numbers(from_dlpack(out), cute.Int32(count), left_out))
        assert out[0] == count
    compiled = cute.compile(first_is_count, Numbers(from_dlpack(out), cute.Int32(5), left_out))
    if left_out:
        with pytest.raises(DSLError, match="'numbers' was compiled as"):
            compiled(Numbers(from_dlpack(out), cute.Int32(9), left_out))
    else:
        compiled(Numbers(from_dlpack(out), cute.Int32(9), left_out))
        assert out[0] == 9
