"""Arithmetic in plain Python, against Python's ints and NumPy's floats."""

from __future__ import annotations

import math
import operator

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basedsl.errors import DSLTypeError
from basedsl.numeric import (
    BFloat16,
    Boolean,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Numeric,
    TFloat32,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
    promote,
)

law = settings(max_examples=80, deadline=None, derandomize=True, database=None)
INTEGERS = [Int8, Int16, Int32, Int64, Int128, Uint8, Uint16, Uint32, Uint64, Uint128]
FLOATS = {Float16: np.float16, BFloat16: ml_dtypes.bfloat16, Float32: np.float32, Float64: float}
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
BITS = [operator.and_, operator.or_, operator.xor]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def wrapped(T: type[Numeric], n: int) -> int:
    n %= 2**T.width
    return n - 2**T.width if n > T.max else n


def same(x: float, y: float) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y and math.copysign(1, x) == math.copysign(1, y)


def numbers(T: type[Numeric]) -> st.SearchStrategy[int]:
    return st.integers(int(T.min), int(T.max)) | st.sampled_from(
        [int(T.min), int(T.max), 0, 1, 2, int(T.max) - 1]
    )


@pytest.mark.parametrize("T", INTEGERS, ids=repr)
@law
@given(data=st.data())
def test_integers_are_pythons_modulo_two_to_the_width(T: type[Numeric], data) -> None:
    x, y = data.draw(numbers(T)), data.draw(numbers(T))
    for op in ARITHMETIC + BITS:
        if y == 0 and op in (operator.floordiv, operator.mod):
            with pytest.raises(ZeroDivisionError):
                op(T(x), T(y))
            continue
        result = op(T(x), T(y))
        assert type(result) is T and result.value == wrapped(T, op(x, y))
    for op in COMPARISONS:
        result = op(T(x), T(y))
        assert type(result) is Boolean and result.value is op(x, y)
    assert (-T(x)).value == wrapped(T, -x)
    assert (~T(x)).value == wrapped(T, ~x)
    assert abs(T(x)).value == wrapped(T, abs(x))
    if y != 0:
        q, r = divmod(T(x), T(y))
        assert (q.value, r.value) == (wrapped(T, x // y), wrapped(T, x % y))
        assert type(T(x) / T(y)) is Float32


@pytest.mark.parametrize("T", INTEGERS, ids=repr)
@law
@given(data=st.data(), count=st.integers(0, 200))
def test_shifts_are_pythons(T: type[Numeric], data, count: int) -> None:
    x = data.draw(numbers(T))
    assert (T(x) << count).value == wrapped(T, x << count)
    assert (T(x) >> count).value == x >> count
    assert type(T(x) << Int32(count)) is T
    with pytest.raises(ValueError, match="negative shift count"):
        T(x) << -1


@pytest.mark.parametrize("T", INTEGERS, ids=repr)
@law
@given(data=st.data(), exponent=st.integers(0, 40))
def test_powers_of_integers(T: type[Numeric], data, exponent: int) -> None:
    x = data.draw(numbers(T))
    result = T(x) ** exponent
    assert type(result) is T and result.value == wrapped(T, x**exponent)
    assert (2 ** T(exponent)).value == wrapped(T, 2**exponent)


def test_an_integer_to_a_known_negative_power_is_a_float() -> None:
    for x in (Int32(2) ** -2, 2 ** Int32(-2), Int32(2) ** Int32(-2)):
        assert type(x) is Float32 and x.value == 0.25


@law
@given(
    x=st.integers(-(2**70), 2**70),
    A=st.sampled_from(INTEGERS),
    B=st.sampled_from(INTEGERS),
    y=st.integers(-(2**70), 2**70),
)
def test_mixed_integers_compare_by_value(
    A: type[Numeric], B: type[Numeric], x: int, y: int
) -> None:
    a, b = A(wrapped(A, x)), B(wrapped(B, y))
    for op in COMPARISONS:
        assert op(a, b).value is op(a.value, b.value)
        assert op(a, y).value is op(a.value, y)  # also a literal that A cannot hold
        assert op(y, a).value is op(y, a.value)


@law
@given(A=st.sampled_from(INTEGERS), B=st.sampled_from(INTEGERS), data=st.data())
def test_mixed_integers_promote(A: type[Numeric], B: type[Numeric], data) -> None:
    x, y = data.draw(numbers(A)), data.draw(numbers(B))
    try:
        T = promote(A, B)
    except DSLTypeError:
        with pytest.raises(DSLTypeError, match="no type holds both"):
            A(x) + B(y)
        return
    for op in (operator.add, operator.sub, operator.mul):
        result = op(A(x), B(y))
        assert type(result) is T and result.value == wrapped(T, op(x, y))


@pytest.mark.parametrize("T", FLOATS, ids=repr)
@law
@given(x=st.floats(width=16), y=st.floats(width=16))
def test_floats_are_numpys(T: type[Numeric], x: float, y: float) -> None:
    scalar = np.float64 if T is Float64 else FLOATS[T]
    with np.errstate(all="ignore"):
        a, b = scalar(x), scalar(y)
        for op in (operator.add, operator.sub, operator.mul, operator.truediv):
            result = op(T(x), T(y))
            assert type(result) is T and same(result.value, float(op(a, b)))
    for compare in COMPARISONS:
        assert compare(T(x), T(y)).value is bool(compare(float(a), float(b)))
    assert same((-T(x)).value, -float(a)) and same(abs(T(x)).value, abs(float(a)))


@law
@given(x=st.floats(allow_nan=False), y=st.floats(allow_nan=False))
def test_float_division_floors_as_python(x: float, y: float) -> None:
    a, b = Float64(x), Float64(y)
    if y == 0:
        sign = math.copysign(1, x) * math.copysign(1, y)
        assert same((a // b).value, sign * math.inf if x else math.nan)
        assert math.isnan((a % b).value)
        return
    if math.isinf(x):
        assert math.isnan((a % b).value)
        return
    assert same((a // b).value, x // y) and same((a % b).value, x % y)
    q, r = divmod(a, b)
    assert same(q.value, x // y) and same(r.value, x % y)


@law
@given(x=st.floats(width=32, allow_nan=False), y=st.floats(width=32, allow_nan=False))
def test_float32_modulo_is_exact(x: float, y: float) -> None:
    if y != 0 and math.isfinite(x) and math.isfinite(y):
        exact = x % y  # in double, which may round where Float32 does: compare after rounding
        result = (Float32(x) % Float32(y)).value
        assert abs(result - exact) <= abs(y) * 2**-23 + 2.0**-149


def test_python_numbers_on_either_side() -> None:
    assert (Int8(5) + 3).value == 8 and type(3 + Int8(5)) is Int8
    assert (10 - Int8(3)).value == 7 and (7 // Int8(2)).value == 3 and (7 % Int8(4)).value == 3
    assert (1 << Int8(3)).value == 8 and type(1 << Int8(3)) is Int8
    assert type(Int32(2) * 0.5) is Float32 and (Int32(3) * 0.5).value == 1.5
    assert type(Float16(1) + 1) is Float16
    assert (2.0 ** Float32(3)).value == 8.0 and (Float32(3) ** 2).value == 9.0
    assert type(np.int64(3) + Int8(1)) is Int64 and type(Int8(1) + np.int64(3)) is Int64
    assert type(np.float32(3) * Int8(2)) is Float32
    with pytest.raises(DSLTypeError, match="300 does not fit Int8"):
        Int8(1) + 300
    with pytest.raises(DSLTypeError, match="-1 does not fit Uint8"):
        Uint8(1) + -1


def test_booleans_count_as_ints_and_stay_booleans_for_bits() -> None:
    t, f = Boolean(True), Boolean(False)
    assert type(t + t) is Int32 and (t + t).value == 2 and (-t).value == -1 and (+t).value == 1
    assert (t / t).value == 1.0 and (t << 3).value == 8 and (t**2).value == 1
    for result, expected in ((t & f, False), (t | f, True), (t ^ t, False), (t & True, True)):
        assert type(result) is Boolean and result.value is expected
    assert type(t & Int8(3)) is Int8 and (t & Int8(3)).value == 1
    assert (t + 5).value == 6 and type(t + Int64(5)) is Int64
    assert (t > f).value and (t == 1).value and (t < 2).value
    with pytest.raises(DSLTypeError, match="`~` of a Boolean is -1 or -2 in Python"):
        operator.invert(t)


def test_operators_that_a_type_has_not() -> None:
    for storage in (Float8E5M2(1.5), Int4(3), TFloat32(1.0)):
        name = type(storage).__name__
        for make in (
            lambda x: x + x, lambda x: x * 2, lambda x: -x, abs, lambda x: x < x,
            lambda x: x + Float32(1),
        ):  # fmt: skip
            with pytest.raises(DSLTypeError, match=f"{name} is a storage type") as error:
                make(storage)
            assert "convert it first" in str(error.value)
    with pytest.raises(DSLTypeError, match=r"Float32 & Float32: this operator needs integers"):
        Float32(1) & Float32(1)
    with pytest.raises(DSLTypeError, match="`~` needs an integer"):
        ~Float32(1)
    with pytest.raises(TypeError, match="unsupported operand"):
        Int32(1) + "1"
    with pytest.raises(DSLTypeError, match="modulus is not available"):
        pow(Int32(2), 3, 5)


def test_integer_true_division_gives_the_default_float() -> None:
    assert type(Int64(7) / Int64(2)) is Float32
    assert type(Float64(7) / Int64(2)) is Float64
    assert (Int32(1) / 0).value == math.inf
