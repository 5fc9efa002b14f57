"""Floats of 16 bits in native code: arithmetic, conversions, every half."""

from __future__ import annotations

import ctypes
import platform

import ml_dtypes
import numpy as np
import pytest

from basedsl.objectstage import native
from basedsl.objectstage.lowering import native_pipeline
from basedsl.objectstage.native import NativeTarget

I64, PTR = ctypes.c_int64, ctypes.c_void_p


@pytest.mark.parametrize("features", [None, ""])
@pytest.mark.parametrize(
    ("kind", "dtype"), [("f16", np.dtype(np.float16)), ("bf16", np.dtype(ml_dtypes.bfloat16))]
)
def test_narrow_floats_with_and_without_hardware(compiled, kind, dtype, features):
    text = f"""
    func.func @f(%p: !llvm.ptr, %q: !llvm.ptr, %r: !llvm.ptr) {{
      %x = llvm.load %p : !llvm.ptr -> {kind}
      %y = llvm.load %q : !llvm.ptr -> {kind}
      %0 = arith.mulf %x, %y : {kind}
      %1 = math.sqrt %0 : {kind}
      %2 = arith.extf %1 : {kind} to f64
      %3 = arith.constant 3.0 : f64
      %4 = arith.mulf %2, %3 : f64
      %5 = arith.truncf %4 : f64 to {kind}
      llvm.store %5, %r : {kind}, !llvm.ptr
      return
    }}"""
    x86 = "x86" in platform.machine()
    cpu = "" if features is None else "x86-64" if x86 else "generic"
    target = NativeTarget(cpu=cpu, features=features)
    f = compiled(text, None, PTR, PTR, PTR, pipeline=native_pipeline(target=target))
    for a, b in ((1.5, 2.25), (0.1, 0.3), (200.0, 50.0), (1e-4, 1e-3)):
        x, y, r = (np.array([v], dtype) for v in (a, b, 0))
        f(x.ctypes.data, y.ctypes.data, r.ctypes.data)
        root = np.sqrt((x * y).astype(dtype).astype(np.float32)).astype(dtype)
        assert r[0] == (root.astype(np.float64) * 3.0).astype(dtype)[0]


def halves_and_neighbours(dtype):
    """Every value of a 16-bit float, and the doubles and floats around and between them."""
    with np.errstate(all="ignore"):
        every = np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float64)
        middle = (every + np.roll(every, -1)) / 2
        near = [np.nextafter(middle, s * np.inf) for s in (1, -1)]
        floats = [np.nextafter(middle.astype(np.float32), np.float32(s * 9e9)) for s in (1, -1)]
        return np.concatenate([every, middle, *near, *floats, every * 1.0000001])


@pytest.mark.parametrize("kind", ["half", "bfloat"])
def test_narrow_float_conversions_round_as_ieee_says(kind):
    dtype = np.dtype(np.float16 if kind == "half" else ml_dtypes.bfloat16)
    short = {"half": "hf", "bfloat": "bf"}[kind]
    loops = "".join(
        f"""
define void @from_{c}(ptr %p, ptr %q, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pi = getelementptr {c}, ptr %p, i64 %i
  %qi = getelementptr {kind}, ptr %q, i64 %i
  %x = load {c}, ptr %pi
  %y = call {kind} @{name}({c} %x)
  store {kind} %y, ptr %qi
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
declare {kind} @{name}({c})
"""
        for c, name in (("float", f"__truncsf{short}2"), ("double", f"__truncdf{short}2"))
    )
    code = native.load_object(native.compile_llvmir(loops))
    wide = halves_and_neighbours(dtype)
    for c, from_type in (("float", np.float32), ("double", np.float64)):
        with np.errstate(all="ignore"):
            values = wide.astype(from_type)
            expected = values.astype(np.float16) if kind == "half" else rounded_once(values)
        got = np.empty(values.size, dtype)
        code.function(f"from_{c}", None, PTR, PTR, I64)(
            values.ctypes.data, got.ctypes.data, values.size
        )
        nan = np.isnan(values)
        assert np.isnan(got[nan].astype(np.float32)).all()
        wrong = (got.view(np.uint16) != expected.view(np.uint16)) & ~nan
        assert not wrong.any(), values[wrong][:5]


def rounded_once(values):
    """float32 or float64 to bfloat16, by comparing with both neighbours exactly."""

    def exact(narrow):
        wide = narrow.astype(np.float64)
        return np.where(np.isinf(wide), np.sign(wide) * 2.0**128, wide)

    best = values.astype(np.float32).astype(ml_dtypes.bfloat16)
    bits = best.view(np.uint16)
    for step in (-1, 1):
        other = (bits + np.uint16(step % 2**16)).view(ml_dtypes.bfloat16)
        a, b = (np.abs(exact(v) - values) for v in (best, other))
        even = (other.view(np.uint16) & 1) == 0
        better = (b < a) | ((b == a) & even & (best.view(np.uint16) & 1 == 1))
        same_sign = np.signbit(other.astype(np.float32)) == np.signbit(values)
        best = np.where(better & same_sign, other, best)
    return best


def test_every_half_widens_exactly():
    text = """
define void @f(ptr %p, ptr %q) {
  %x = load half, ptr %p
  %y = call float @__extendhfsf2(half %x)
  store float %y, ptr %q
  ret void
}
declare float @__extendhfsf2(half)
"""
    f = native.load_object(native.compile_llvmir(text)).function("f", None, PTR, PTR)
    halves = np.arange(0, 2**16, dtype=np.uint16).view(np.float16)
    got = np.empty(halves.size, np.float32)
    for i in range(0, halves.size, 7):
        f(halves.ctypes.data + 2 * i, got.ctypes.data + 4 * i)
    expected = halves.astype(np.float32)
    np.testing.assert_array_equal(got[::7], expected[::7])
