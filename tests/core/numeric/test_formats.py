"""Facts that the classes have about themselves, and which numbers fit them."""

from __future__ import annotations

import copy
import math
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basedsl import numeric
from basedsl.errors import DSLTypeError
from basedsl.numeric import (
    TYPES,
    BFloat16,
    Boolean,
    Float,
    Float4E2M1FN,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Integer,
    Numeric,
    TFloat32,
    Uint8,
    Uint64,
    as_numeric,
    dtype,
    from_dlpack,
    from_numpy_dtype,
    from_storage,
    is_dynamic,
    mlir_type,
)

law = settings(max_examples=80, deadline=None, derandomize=True, database=None)
ALL = list(TYPES.values())
INTEGERS = [T for T in ALL if T.is_integer and T is not Boolean]
FLOATS = [T for T in ALL if T.is_float]
EIGHT_BITS = [T for T in FLOATS if T.width <= 8]


def test_the_list_of_the_issue_is_there() -> None:
    names = "Boolean Int4 Int8 Int16 Int32 Int64 Int128 Uint4 Uint8 Uint16 Uint32 Uint64 Uint128 "
    names += "Float16 BFloat16 TFloat32 Float32 Float64 Float8E5M2 Float8E4M3FN Float8E4M3 "
    names += "Float8E4M3B11FNUZ Float8E8M0FNU Float6E3M2FN Float6E2M3FN Float4E2M1FN"
    for name in names.split():
        assert getattr(numeric, name) is dtype(name)
        assert repr(dtype(name)) == dtype(name).__name__ == name
    assert set(names.split()) == set(TYPES)


@pytest.mark.parametrize("T", ALL, ids=repr)
def test_kind_and_range(T: type[Numeric]) -> None:
    assert issubclass(T, Integer if T.is_integer else Float)
    assert T.is_integer != T.is_float
    assert T.min <= T.zero <= T.max or T is Float8E8M0FNU
    if T.is_float:
        assert T.concrete(T.max).value == T.max
        assert T.inf == math.inf
    else:
        assert T.max - T.min + 1 == 2**T.width


def test_widths_and_signs() -> None:
    assert [T.width for T in (Boolean, Int4, Int8, Int128, TFloat32, Float4E2M1FN)] == [
        1, 4, 8, 128, 32, 4,
    ]  # fmt: skip
    assert Boolean.storage_width == 8
    assert Int8.signed and Float32.signed and not Uint8.signed and not Boolean.signed
    assert Int8.is_same_kind(Uint64) and not Int8.is_same_kind(Float16)
    assert -Float32.inf == -math.inf


@pytest.mark.parametrize("T", [T for T in ALL if T.numpy_dtype is not None], ids=repr)
def test_numpy_dtypes_map_both_ways(T: type[Numeric]) -> None:
    back = from_numpy_dtype(T.numpy_dtype)
    assert back is (Float32 if T is TFloat32 else T)


@pytest.mark.parametrize("T", ALL, ids=repr)
def test_dlpack_types_map_both_ways(T: type[Numeric]) -> None:
    assert from_dlpack(*T.dlpack) is (Float32 if T is TFloat32 else T)


def test_dlpack_codes_agree_with_numpy() -> None:
    capsule_free = {np.int16: (0, 16), np.uint32: (1, 32), np.float64: (2, 64), np.bool_: (6, 8)}
    for scalar, code in capsule_free.items():
        assert from_numpy_dtype(scalar).dlpack[:2] == code


def test_unknown_foreign_types_are_errors() -> None:
    with pytest.raises(DSLTypeError, match="no numeric type has the NumPy dtype"):
        from_numpy_dtype(np.complex64)
    with pytest.raises(DSLTypeError, match="DLPack type code 5 with 64 bits"):
        from_dlpack(5, 64)
    with pytest.raises(DSLTypeError, match="4 lanes"):
        from_dlpack(2, 32, 4)
    with pytest.raises(DSLTypeError, match="no numeric type is called 'Float33'"):
        dtype("Float33")


@pytest.mark.parametrize("T", EIGHT_BITS, ids=repr)
def test_every_value_of_a_small_float_is_itself(T: type[Numeric]) -> None:
    raw = np.arange(2**T.width, dtype=np.uint8).view(T.numpy_dtype)
    for value in raw.astype(np.float64):
        held = T.concrete(value).value
        if math.isinf(value):
            assert held == math.copysign(T.max, value)  # conversions saturate, infinities too
        else:
            assert held == value or (math.isnan(held) and math.isnan(value))


@pytest.mark.parametrize("T", EIGHT_BITS, ids=repr)
@law
@given(x=st.floats(-1e6, 1e6))
def test_small_floats_round_as_ml_dtypes_below_the_largest(T: type[Numeric], x: float) -> None:
    if T is Float8E8M0FNU:
        x = abs(x) + 1e-30
    expected = float(np.float32(max(min(x, T.max), -T.max)).astype(T.numpy_dtype))
    assert T.concrete(x).value == expected


def test_saturation_of_small_floats() -> None:
    assert Float8E4M3FN(1000.0).value == 448.0
    assert Float8E4M3FN(-math.inf).value == -448.0
    assert math.isnan(Float8E4M3FN(math.nan).value)
    assert Float8E5M2(1e9).value == 57344.0
    assert Float4E2M1FN(math.nan).value == 6.0


@law
@given(x=st.floats(allow_nan=False))
def test_wide_floats_round_as_numpy(x: float) -> None:
    with np.errstate(all="ignore"):
        rounded = {
            Float16: float(np.float16(x)),
            Float32: float(np.float32(x)),
            BFloat16: float(np.float32(x).astype(ml_dtypes.bfloat16)),
            Float64: x,
        }
    for kind, expected in rounded.items():
        if math.isinf(expected) and math.isfinite(x):
            with pytest.raises(DSLTypeError, match=f"does not fit {kind.__name__}"):
                kind(x)
        else:
            assert kind(x).value == expected


@law
@given(x=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_tfloat32_keeps_ten_fraction_bits_to_nearest_even(x: float) -> None:
    held = TFloat32(x).value
    mantissa, exponent = math.frexp(x)
    step = 2.0 ** max(exponent - 11, -126 - 10)
    if math.isfinite(held):
        assert math.fmod(held, step) == 0
        assert abs(held - x) <= step / 2
        if abs(held - x) == step / 2:
            assert math.fmod(held / step, 2) == 0
    del mantissa


@pytest.mark.parametrize("T", INTEGERS, ids=repr)
def test_an_int_that_does_not_fit_is_an_error(T: type[Numeric]) -> None:
    assert T(T.max).value == T.max
    assert T(T.min).value == T.min
    for n in (T.max + 1, T.min - 1, 10**50):
        with pytest.raises(DSLTypeError, match=f"{n} does not fit {T.__name__}"):
            T(n)


def test_what_the_constructor_takes() -> None:
    assert Int32(3.99).value == 3 and Int32(-3.99).value == -3
    assert Boolean(5).value is True and Boolean(0.0).value is False
    assert Float32(True).value == 1.0
    assert Int32(np.int64(7)).value == 7
    assert Float64(np.float32(0.5)).value == 0.5
    assert Int8(Int32(300)).value == 44  # numerics convert, they do not have to fit
    assert Int32(Float32(1e20)).value == Int32.max
    assert Float32(Int64(2**40 + 1)).value == 2.0**40
    for bad, text in (
        ("7", "takes a number, not '7' of type str"),
        (None, "takes a number, not None"),
        ([1], "takes a number"),
        (1j, "takes a number"),
    ):
        with pytest.raises(DSLTypeError, match=text):
            Int32(bad)
    for bad_float in (math.nan, math.inf):
        with pytest.raises(DSLTypeError, match="has no value as Int32"):
            Int32(bad_float)
    with pytest.raises(DSLTypeError, match="does not fit Float32"):
        Float32(10**40)
    with pytest.raises(DSLTypeError, match="does not fit Float64"):
        Float64(10**400)


@pytest.mark.parametrize("T", [Numeric, Integer, Float], ids=repr)
def test_abstract_types_make_no_numbers(T: type[Numeric]) -> None:
    with pytest.raises(DSLTypeError, match="abstract number type") as error:
        T(1)
    assert "Int32" in str(error.value)


def test_concrete_numbers_behave_as_python_numbers() -> None:
    assert int(Int32(7)) == 7 and float(Float32(0.5)) == 0.5 and bool(Int8(0)) is False
    assert [10, 20, 30][Int8(1)] == 20
    assert str(Int32(7)) == "7" and repr(Int32(7)) == "Int32(7)"
    assert f"{Float32(0.5):.3f} {Int32(255):x} {Int32(1)}" == "0.500 ff 1"
    assert hash(Int32(7)) == hash(7)
    assert {Int32(7): "seven"}[Int32(7)] == "seven"
    assert not is_dynamic(Int32(7)) and not Int32(7).is_dynamic and not is_dynamic(7)
    assert Int32(7).dtype is Int32
    assert Int32(7) != None  # noqa: E711
    assert Int32(7) != "7"


def test_concrete_numbers_copy_and_pickle() -> None:
    for x in (Int32(7), as_numeric(3), Float16(0.1), Boolean(True)):
        for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
            assert type(y) is type(x) and y.value == x.value and y.weak == x.weak


def test_as_numeric() -> None:
    for python, T, weak in ((True, Boolean, False), (3, Int32, True), (0.5, Float32, True)):
        x = as_numeric(python)
        assert (type(x), x.value, x.weak) == (T, python, weak)
    assert type(as_numeric(np.int16(3))) is Int16 and not as_numeric(np.int16(3)).weak
    assert type(as_numeric(np.float64(3))) is Float64
    assert type(as_numeric(ml_dtypes.bfloat16(3))) is BFloat16
    x = Int64(3)
    assert as_numeric(x) is x
    assert type(as_numeric(2**40, like=Int64)) is Int64
    assert type(as_numeric(3, like=Float16(1))) is Float16
    assert type(as_numeric(0.5, like=Int8)) is Float32
    with pytest.raises(DSLTypeError, match="does not fit Int32"):
        as_numeric(2**31)
    with pytest.raises(DSLTypeError, match="is not a number"):
        as_numeric("3")


def test_from_storage() -> None:
    assert from_storage(Boolean, 1) is True
    assert from_storage(Int8, -3) == -3
    assert from_storage(Float32, 0.5) == 0.5
    assert from_storage(Int128, (-5).to_bytes(16, "little", signed=True)) == -5
    assert from_storage(BFloat16, 0x3FC0) == 1.5
    assert from_storage(Float8E5M2, 0x3C) == 1.0


def test_mlir_types(program) -> None:
    with program() as p:
        shown = {T.__name__: str(mlir_type(T, p.trace.ir)) for T in ALL}
        assert Float32.mlir_type == p.trace.ir.F32Type.get()
        assert Uint8.mlir_type == Int8.mlir_type
    assert shown == {
        "Boolean": "i1", "Int4": "i4", "Int8": "i8", "Int16": "i16", "Int32": "i32",
        "Int64": "i64", "Int128": "i128", "Uint4": "i4", "Uint8": "i8", "Uint16": "i16",
        "Uint32": "i32", "Uint64": "i64", "Uint128": "i128", "Float16": "f16", "BFloat16": "bf16",
        "TFloat32": "tf32", "Float32": "f32", "Float64": "f64", "Float8E5M2": "f8E5M2",
        "Float8E4M3FN": "f8E4M3FN", "Float8E4M3": "f8E4M3", "Float8E4M3B11FNUZ": "f8E4M3B11FNUZ",
        "Float8E8M0FNU": "f8E8M0FNU", "Float6E3M2FN": "f6E3M2FN", "Float6E2M3FN": "f6E2M3FN",
        "Float4E2M1FN": "f4E2M1FN",
    }  # fmt: skip
