"""Conversions of Float8 and narrower floats on a CPU: every code, every tie and its neighbours."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from basedsl.numeric.formats import FORMATS, round_float
from basedsl.objectstage import native, run_pipeline
from basedsl.objectstage.lowering import native_pipeline
from basedsl.objectstage.storage_floats import ENCODINGS, NAMES

PTR, I64 = ctypes.c_void_p, ctypes.c_int64
SMALL = {row.mlir: row for row in FORMATS.values() if row.mlir in NAMES and row.width <= 8}
RNG = np.random.default_rng(5)


def test_every_storage_format_is_known():
    assert {row.mlir for row in FORMATS.values() if row.kind.value == "float"} - NAMES == {
        "f16", "bf16", "f32", "f64"
    }  # fmt: skip
    for name, encoding in ENCODINGS.items():
        code = np.array([encoding.top], np.uint8).view(SMALL[name].numpy)
        assert float(code[0]) == SMALL[name].largest


@pytest.fixture
def converted(mlir_context):
    """`converted(text, values, dtype)`: what the loop body `text` makes of %x, for each value."""

    def converted(body, source, wide, target, values, dtype, n=1):
        text = f"""
        func.func @f(%p: !llvm.ptr, %q: !llvm.ptr, %n: i64) {{
          %c0 = arith.constant 0 : i64
          %step = arith.constant {n} : i64
          scf.for %i = %c0 to %n step %step : i64 {{
            %a = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {wide[0]}
            %b = llvm.getelementptr %q[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {wide[1]}
            %x = llvm.load %a {{alignment = 1}} : !llvm.ptr -> {source}
            {body}
            llvm.store %y, %b {{alignment = 1}} : {target}, !llvm.ptr
          }}
          return
        }}"""
        with mlir_context.entered():
            module = mlir_context.bindings.ir.Module.parse(text)
            code = run_pipeline(native_pipeline(opt_level=1), module, mlir_context).artifact
        values = np.concatenate([values, values[: -values.size % n]])
        out = np.zeros(values.size, dtype)
        function = native.load_object(code).function("f", None, PTR, PTR, I64)
        function(values.ctypes.data, out.ctypes.data, values.size)
        return values, out

    return converted


def of(name, n):
    return name if n == 1 else f"vector<{n}x{name}>"


def interesting(dtype):
    """Float32: all values of a format, what is between two of them, neighbours, and others."""
    every = np.arange(2 ** (8 * np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        values = np.unique(every.astype(np.float32))
        values = values[np.isfinite(values)]
        ties = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
        near = [np.nextafter(x, np.float32(s)) for x in (values, ties) for s in (-9e9, 9e9)]
        random = RNG.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
        scaled = RNG.standard_normal(20000).astype(np.float32) * values.max() / 2
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -1e-45], np.float32)
    return np.concatenate([values, ties, *near, random, scaled, edges])


def expected_codes(values, row):
    """The number that ml_dtypes rounds to, where that is told to saturate."""
    with np.errstate(all="ignore"):
        least = 2.0**-127 if row.name == "Float8E8M0FNU" else -row.largest
        clipped = np.clip(values, np.float32(least), np.float32(row.largest))
        if row.width < 8:
            clipped = np.where(np.isnan(values), np.float32(row.largest), clipped)
        return clipped.astype(row.numpy)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("name", SMALL)
def test_to_storage(converted, name, n):
    row = SMALL[name]
    bits = of(f"i{row.width}", n)
    body = f"""%s = arith.truncf %x : {of("f32", n)} to {of(name, n)}
            %t = arith.bitcast %s : {of(name, n)} to {bits}
            %y = {
        f"arith.extui %t : {bits} to {of('i8', n)}"
        if row.width < 8
        else f"arith.bitcast %t : {bits} to {of('i8', n)}"
    }"""
    values, got = converted(
        body, of("f32", n), ("f32", "i8"), of("i8", n), interesting(row.numpy), np.uint8, n
    )
    expected = expected_codes(values, row).view(np.uint8)
    nan = np.isnan(values)
    np.testing.assert_array_equal(got[~nan], expected[~nan])
    python = np.array([round_float(float(v), row) for v in values[::97]])
    np.testing.assert_array_equal(got.view(row.numpy)[::97].astype(np.float64), python)
    if row.width == 8:
        assert np.isnan(got[nan].view(row.numpy).astype(np.float32)).all()
    else:
        np.testing.assert_array_equal(got[nan], expected[nan])


@pytest.mark.parametrize("wide", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", SMALL)
def test_from_storage(converted, name, wide):
    row = SMALL[name]
    n = 2 if wide == "f16" else 1
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
    narrow = f"arith.trunci %x : {of('i8', n)} to {of(f'i{row.width}', n)}"
    if row.width == 8:
        narrow = f"arith.bitcast %x : {of('i8', n)} to {of('i8', n)}"
    body = f"""%s = {narrow}
            %t = arith.bitcast %s : {of(f"i{row.width}", n)} to {of(name, n)}
            %y = arith.extf %t : {of(name, n)} to {of(wide, n)}"""
    codes = np.arange(2**row.width, dtype=np.uint8)
    codes, got = converted(body, of("i8", n), ("i8", wide), of(wide, n), codes, dtype[wide], n)
    with np.errstate(all="ignore"):
        expected = codes.view(row.numpy).astype(np.float32).astype(dtype[wide])
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(got), nan)
    bits = np.dtype(f"u{got.itemsize}")
    np.testing.assert_array_equal(got.view(bits)[~nan], expected.view(bits)[~nan])


def test_tf32(converted):
    row = FORMATS["TFloat32"]
    body = """%s = arith.truncf %x : f32 to tf32
            %one = arith.constant 1.0 : tf32
            %yes = arith.constant true
            %t = scf.if %yes -> tf32 { scf.yield %s : tf32 } else { scf.yield %one : tf32 }
            %y = arith.extf %t : tf32 to f32"""
    ties = np.arange(0x3F800000, 0x3F808000, 0x800, dtype=np.uint32).view(np.float32)
    near = [np.nextafter(ties, np.float32(s)) for s in (-9, 9)]
    edges = np.array([np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, 0.0, -0.0], np.float32)
    values = np.concatenate([ties, -ties, *near, edges])
    values, got = converted(body, "f32", ("f32", "f32"), "f32", values, np.float32)
    expected = np.array([round_float(float(v), row) for v in values], np.float32)
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))
