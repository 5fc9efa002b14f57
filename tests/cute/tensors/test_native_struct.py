"""`cute.native_struct`: values with C's layout, mutable in staged code, passed by value."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError


@cute.native_struct
class Range:
    first: cute.Int32
    count: cute.Int64
    scale: cute.Float32
    step: cute.Constexpr = 2


@cute.native_struct
class Pair:
    tag: cute.Int8
    inner: Range


@cute.native_struct(zero_init=False, packed=True)
class Packed:
    tag: cute.Int8
    number: cute.Int64


class C(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int32), ("count", ctypes.c_int64), ("scale", ctypes.c_float))


class CPair(ctypes.Structure):
    _fields_ = (("tag", ctypes.c_int8), ("inner", C))


def test_the_layout_is_cs():
    assert Range.size_in_bytes() == ctypes.sizeof(C)
    assert [Range.offset_of(n) for n in ("first", "count", "scale")] == [0, 8, 16]
    assert Range.__alignof__() == ctypes.alignment(C)
    assert (Pair.size_in_bytes(), Pair.offset_of("inner")) == (ctypes.sizeof(CPair), 8)
    assert (Packed.size_in_bytes(), Packed.offset_of("number"), Packed.__alignof__()) == (9, 1, 1)


def test_values_in_python():
    a, b = Range(), Range(1, 2, 3.5)
    assert (int(a.first), int(a.count), float(a.scale), a.step) == (0, 0, 0.0, 2)
    assert (int(b.first), int(b.count), float(b.scale)) == (1, 2, 3.5)
    b.first = 7
    assert int(b.first) == 7 and type(b.first) is cute.Int32
    nested = Pair()
    nested.inner.count = 5
    assert int(nested.inner.count) == 5 and int(Pair().inner.count) == 0


def test_a_constexpr_field_without_a_default_may_follow_the_others():
    @cute.native_struct
    class Tile:
        row: cute.Int32
        width: cute.Constexpr

    assert (int(Tile(1, 8).row), Tile(width=8).width) == (1, 8)
    with pytest.raises(TypeError, match="the Constexpr field 'width' is not given"):
        Tile(1)


@pytest.mark.parametrize(
    "action, message",
    [
        (lambda: Packed().number, "read before it has a value"),
        (lambda: setattr(Range(), "first", cute.Float32(1.0)), "a Float32 is stored"),
        (lambda: setattr(Pair(), "inner", 3), "the field 'inner' is a Range, not a int"),
        (lambda: cute.native_struct(type("T", (), {"__annotations__": {"x": list}})), "no field"),
    ],
)  # fmt: skip
def test_what_is_refused(action, message):
    with pytest.raises(DSLError, match=message):
        action()


def test_a_misspelt_field_is_no_field():
    with pytest.raises(AttributeError, match="no field 'frist'"):
        Range().frist = 1


@cute.kernel
def walk_kernel(r: Range, pair: Pair, out: cute.Tensor):
    state = Range(r.first, 0, 1.0, r.step)
    for i in cute.range(r.count):
        if i % 2 == 0:
            state.first = state.first + r.step
        else:
            state.scale = state.scale * r.scale
        state.count += 1
    pair.inner.first = state.first + pair.tag.to(cute.Int32)
    out[0] = pair.inner.first.to(cute.Float32)
    out[1] = state.count.to(cute.Float32)
    out[2] = state.scale


@cute.jit
def walk(r: Range, pair: Pair, out: cute.Tensor):
    walk_kernel(r, pair, out).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("step", [2, 5])
def test_fields_are_state_in_kernels(target, step):
    out = np.zeros(3, np.float32)
    walk(Range(10, 7, 3.0, step), Pair(4, Range()), out)
    np.testing.assert_array_equal(out, [10 + 4 * step + 4, 7, 27])


def test_constexpr_fields_specialise(sim):
    before = sum(map(len, walk.variants.by_key.values()))
    out = np.zeros(3, np.float32)
    for first, step in ((1, 11), (2, 11), (3, 12)):
        walk(Range(first, 2, 1.0, step), Pair(), out)
        assert out[0] == first + step
    assert sum(map(len, walk.variants.by_key.values())) == before + 2
