"""Arrays of any library as arguments of a DSL that says only what they look like inside."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from basedsl import (
    DSL,
    ArrayArgument,
    ArrayRecord,
    DSLCallError,
    DSLTypeError,
    Float64,
    Language,
    as_numeric,
    current_trace,
)


class View:
    """`view[i]` of the first mode, `view.shape`, `view.strides`."""

    __dsl_leaf__ = True

    def __init__(self, dtype, pointer, shape, strides):
        self.dtype, self.pointer, self.shape, self.strides = dtype, pointer, shape, strides

    def _address(self, i):
        trace = current_trace("an element")
        size = self.dtype.dlpack[1] // 8
        offset = as_numeric(i) * self.strides[0] * size
        llvm = trace.bindings.llvm
        dynamic = trace.ir.DenseI32ArrayAttr.get([-(2**31)])
        byte = trace.ir.IntegerType.get_signless(8)
        kind = llvm.PointerType.get()
        offsets = [offset.ir_value()]
        made = trace.emit(llvm.GEPOp, kind, self.pointer, offsets, dynamic, byte, None)
        return trace, made.result

    def __getitem__(self, i):
        trace, address = self._address(i)
        value = trace.emit(trace.bindings.llvm.LoadOp, trace.ir.F64Type.get(), address)
        return Float64.from_value(value.result)

    def __setitem__(self, i, value):
        trace, address = self._address(i)
        trace.emit(trace.bindings.llvm.StoreOp, as_numeric(value).to(Float64).ir_value(), address)


class ViewArgument(ArrayArgument):
    def proxy(self, values):
        return View(self.dtype, *self.parts(values))


class Views(Language):
    name = "views"

    def argument_type(self, value, annotation, name):
        return ViewArgument.of(value, name) if ArrayRecord.can_read(value) else None


VIEWS = DSL(Views())


@VIEWS.jit
def double(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2


@VIEWS.jit
def extents(x):
    return x.shape[0] * 100 + x.strides[0]


def test_arrays_are_read_and_written_through_their_strides():
    x = np.arange(12.0)
    for view in (x, x[::3], x[::-1]):
        before = view * 2
        double(view)
        assert np.array_equal(view, before)
    double(x[:0])


def test_compact_and_other_arrays_have_code_of_their_own():
    x = np.zeros((4, 6))
    before = VIEWS.counts["compiled"]
    assert extents(x) == 406
    assert extents(x[:, ::2]) == 406
    assert extents(x[:2]) == 206 and extents(x[::2]) == 212  # compact, as the first
    assert VIEWS.counts["compiled"] + VIEWS.counts["loaded"] - before == 2
    for _ in range(3):  # the native call must not take one for the other
        assert extents(x[:, ::2]) == 406 and extents(x.T[:2]) == 201


class Foreign:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_an_array_of_another_library_shares_the_code():
    x = np.arange(5.0)
    double(x)
    before = dict(VIEWS.counts)
    double(Foreign(x))
    assert dict(VIEWS.counts) == before
    assert x.tolist() == [0, 4, 8, 12, 16]


def test_arrays_that_cannot_be_passed():
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(DSLCallError, match="'x' is read-only"):
        double(frozen)
    away = ArrayRecord(0, (2, 64, 1), (3,), (1,), (2, 0))
    with pytest.raises(DSLCallError, match="'x' is on cuda:0, where code of the CPU"):
        ViewArgument.of(away, "x")
    with pytest.raises(DSLTypeError, match="no counterpart in a tensor"):
        double(np.zeros(3, complex))


def test_storage_is_an_address_extents_and_strides():
    x = np.zeros((4, 6), np.float32)[:, 1:]
    kind = ViewArgument.of(x, "x")
    assert str(kind) == "Float32[?, ?]" and kind.is_compact
    assert kind.pack(x) == (x.ctypes.data, 4, 5, 6, 1)
    assert ViewArgument.of(np.zeros(()), "x").pack(np.array(7.0))[1:] == ()
    assert ctypes.c_float.from_address(kind.pack(x)[0]).value == 0
