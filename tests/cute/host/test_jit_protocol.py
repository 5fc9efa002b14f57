"""Objects become arguments by CuTe's protocol: pointers to values, types, and what is seen."""

import ctypes

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl_cute.cutlass_dsl import T
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
