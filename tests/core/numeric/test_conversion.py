"""Conversions between all formats: the rules on Python numbers, and compiled code bit for bit."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basedsl.errors import DSLTypeError
from basedsl.numeric import (
    TYPES,
    BFloat16,
    Boolean,
    Float8E4M3FN,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int32,
    Int64,
    Int128,
    Numeric,
    TFloat32,
    Uint8,
    Uint32,
    Uint64,
)
from basedsl.numeric.conversion import int_to_float32
from basedsl.testing import filecheck

law = settings(max_examples=80, deadline=None, derandomize=True, database=None)

# What LLVM has types for, so that it runs natively.
NATIVE = [T for T in TYPES.values() if T.format.arithmetic]
STORAGE_FLOATS = [T for T in TYPES.values() if T.is_float and not T.format.arithmetic]


def test_the_rules() -> None:
    assert Int32(300).to(Int8).value == 44
    assert Int8(-1).to(Uint8).value == 255 and Int8(-1).to(Uint64).value == 2**64 - 1
    assert Uint8(255).to(Int8).value == -1 and Uint8(255).to(Int32).value == 255
    assert Float32(-2.9).to(Int32).value == -2
    assert Float32(1e10).to(Int32).value == Int32.max
    assert Float32(-math.inf).to(Int8).value == -128 and Float32(-1.0).to(Uint8).value == 0
    assert Float32(math.nan).to(Int32).value == 0
    assert Float32(-0.5).to(Uint8).value == 0
    assert Float64(65520.0).to(Float16).value == math.inf
    assert Float32(0.1).to(Float64).value == float(np.float32(0.1))
    assert Boolean(True).to(Int8).value == 1 and Boolean(True).to(Float16).value == 1.0
    assert Float32(math.nan).to(Boolean).value is True
    assert Int32(0).to(Boolean).value is False and Int32(256).to(Boolean).value is True
    assert Float32(500.0).to(Float8E4M3FN).value == 448.0
    assert Int32(7).to(Int4).value == 7 and Int32(9).to(Int4).value == -7


def test_to_makes_a_weak_number_strong() -> None:
    from basedsl.numeric import as_numeric

    weak = as_numeric(3)
    assert weak.weak and not weak.to(Int32).weak


def test_to_needs_a_type() -> None:
    for bad in (3, np.int32, "Int32", int):
        with pytest.raises(DSLTypeError, match=r"\.to\(\) takes a numeric type"):
            Int32(1).to(bad)


@law
@given(n=st.integers(-(2**128), 2**128) | st.integers(-(2**30), 2**30))
def test_int_to_float32_rounds_once(n: int) -> None:
    rounded = int_to_float32(n)
    if math.isinf(rounded):
        assert abs(n) >= 2**128 - 2**103
        return
    below = float(np.nextafter(np.float32(rounded), np.float32(-np.inf)))
    above = float(np.nextafter(np.float32(rounded), np.float32(np.inf)))
    error = abs(Fraction(rounded) - n)
    for other in (below, above):
        if math.isfinite(other):
            assert error <= abs(Fraction(other) - n)


@law
@given(n=st.integers(-(2**63), 2**63 - 1))
def test_int64_converts_as_numpy(n: int) -> None:
    x = Int64(n)
    assert x.to(Float32).value == float(np.int64(n).astype(np.float32))
    assert x.to(Float64).value == float(np.int64(n).astype(np.float64))


@law
@given(x=st.floats(allow_nan=False))
def test_floats_convert_as_numpy(x: float) -> None:
    with np.errstate(all="ignore"):
        single = np.float32(x)
        assert Float64(x).to(Float16).value == float(np.float16(x))
        assert Float64(x).to(BFloat16).value == float(single.astype(ml_dtypes.bfloat16))
        assert Float64(x).to(Float32).to(Float16).value == float(single.astype(np.float16))


EDGES = {
    "int": [0, 1, 2, 3, 5, 7, 127, 128, 255, 256, 65504, 65519, 65520, 2**24 + 1, 2**53 + 1],
    "float": [
        0.0, -0.0, 0.5, 1.5, 2.5, -0.9, 1e-45, 1e-8, 6e-8, 65519.9, 65520.0, 3.4e38, 1e300,
        2.0**31, 2.0**32, 2.0**63, 2.0**64, 2.0**127, 2147483520.0, 9.2e18, 0.1, math.inf, math.nan,
        1.00048828125, 1.000488281250001, 1.5 + 2.0**-30,
    ],
}  # fmt: skip


def samples(T: type[Numeric], count: int, rng: random.Random) -> list[Any]:
    if T is Boolean:
        return [False, True]
    if T.is_integer:
        edges = [int(T.min), int(T.max), *EDGES["int"], *(-n for n in EDGES["int"])]
        chosen = [n for n in edges if T.min <= n <= T.max]
        return chosen + [
            T.concrete(0).value + rng.randint(int(T.min), int(T.max)) >> rng.randrange(T.width)
            for _ in range(count)
        ]
    raw = [*EDGES["float"], *(-x for x in EDGES["float"])]
    raw += [
        rng.choice((-1, 1)) * math.ldexp(rng.random(), rng.randint(-40, 70)) for _ in range(count)
    ]
    fitting = [x for x in raw if abs(x) <= T.max or not math.isfinite(x)]
    return [T.concrete(x).value for x in fitting]


def same(x: Any, y: Any) -> bool:
    if isinstance(x, float) and math.isnan(x):
        return math.isnan(y)
    return bool(x == y) and math.copysign(1, x) == math.copysign(1, y)


@pytest.mark.parametrize("source", NATIVE, ids=repr)
def test_compiled_conversions_agree_bit_for_bit(
    program: Callable[..., Any], source: type[Numeric]
) -> None:
    rows = [[x] for x in samples(source, 60, random.Random(source.__name__))]
    with program() as p:
        p.add("all", lambda x: tuple(x.to(T) for T in NATIVE), source).compile()
        answers = p.run("all", rows)
    for (x,), answer in zip(rows, answers, strict=True):
        for T, native in zip(NATIVE, answer, strict=True):
            expected = source.concrete(x).to(T).value
            assert same(native, expected), f"{source}({x}).to({T}): {native}, not {expected}"


def test_a_target_may_saturate_by_itself(program: Callable[..., Any]) -> None:
    with program(saturating_conversions=True) as p:
        p.add("f", lambda x: x.to(Int32), Float32)
        filecheck(
            p.text(),
            """
            CHECK: %[[X:.*]] = llvm.load
            CHECK-NEXT: arith.fptosi %[[X]] : f32 to i32
            CHECK-NOT: arith.select
            """,
        )


@pytest.mark.parametrize("T", STORAGE_FLOATS, ids=repr)
def test_storage_floats_convert_through_float32(
    program: Callable[..., Any], T: type[Numeric]
) -> None:
    with program() as p:

        def f(single: Numeric, double: Numeric, n: Numeric) -> Numeric:
            stored = [x.to(T) for x in (single, double, n)]
            return stored[0].to(Float64) + stored[1].to(Int32) + stored[2].to(Float16)

        p.add("f", f, Float32, Float64, Int64)
        small = T.format.mlir
        filecheck(
            p.text(),
            f"""
            CHECK: arith.truncf %{{{{.*}}}} : f32 to {small}
            CHECK: arith.truncf %{{{{.*}}}} : f64 to f32
            CHECK-NEXT: arith.truncf %{{{{.*}}}} : f32 to {small}
            CHECK: arith.sitofp %{{{{.*}}}} : i64 to f32
            CHECK-NEXT: arith.truncf %{{{{.*}}}} : f32 to {small}
            CHECK: arith.extf %{{{{.*}}}} : {small} to f32
            CHECK-NEXT: arith.extf %{{{{.*}}}} : f32 to f64
            CHECK: arith.extf %{{{{.*}}}} : {small} to f32
            CHECK: arith.fptosi
            CHECK: arith.extf %{{{{.*}}}} : {small} to f32
            CHECK-NEXT: arith.truncf %{{{{.*}}}} : f32 to f16
            """,
        )
        assert p.module.operation.verify()


@pytest.mark.parametrize("T", STORAGE_FLOATS, ids=repr)
def test_constants_of_storage_floats(program: Callable[..., Any], T: type[Numeric]) -> None:
    value = 2.0
    with program() as p:
        p.add("f", lambda x: x + T(value).to(Float32), Float32)
        assert f"arith.constant 2.000000e+00 : {T.format.mlir}" in p.text()
        assert p.module.operation.verify()


def test_bits_kept_by_signless_integers(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(x: Numeric) -> tuple[Numeric, ...]:
            return (
                Uint64(2**64 - 1), Uint8(200), Int64(-(2**63)), Boolean(True),
                Int128(-(2**127)), x.to(Uint32).to(Int32), Int4(-3).to(Int32),
            )  # fmt: skip

        p.add("f", f, Int32).compile()
        assert p.run("f", [[-7]]) == [(2**64 - 1, 200, -(2**63), True, -(2**127), -7, -3)]


def test_conversion_of_the_same_type_emits_nothing(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(x: Numeric) -> Numeric:
            assert x.to(Int32) is x
            assert Int32(x).ir_value() == x.ir_value()
            assert x.to(Uint32).to(Int32).ir_value() == x.ir_value()
            return x

        p.add("f", f, Int32)
        assert "arith" not in p.text()


def test_scales_and_tf32_hold_what_hardware_holds() -> None:
    assert Float8E8M0FNU(3.0).value in (2.0, 4.0) and Float8E8M0FNU(0.0).value == 2.0**-127
    assert (
        TFloat32(1.0 + 2.0**-11).value == 1.0 + 2.0**-10  # a half, away from zero
        and TFloat32(-1.0 - 2.0**-11).value == -1.0 - 2.0**-10
        and TFloat32(1.0 + 2.0**-11 - 2.0**-20).value == 1.0
        and TFloat32(1.0 + 3 * 2.0**-11).value == 1.0 + 2.0**-9
    )
    assert Int8(5).to(Uint8).value == 5
