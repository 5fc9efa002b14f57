"""Python's builtins and math functions on dynamic values, against Python."""

from __future__ import annotations

import builtins
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from basedsl.errors import DSLTypeError
from basedsl.numeric import (
    BFloat16,
    Boolean,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Numeric,
    Uint8,
    Uint32,
    as_numeric,
    elementary,
    maximum,
    minimum,
    resolve,
    select,
)

FLOATS = [Float16, BFloat16, Float32, Float64]
ERROR = {Float16: 2.0**-10, BFloat16: 2.0**-7, Float32: 2.0**-20, Float64: 2.0**-48}

ONE_ARGUMENT: dict[Callable[..., float], list[float]] = {
    math.acos: [-1.0, -0.5, 0.25, 1.0],
    math.acosh: [1.0, 1.5, 20.0],
    math.asin: [-1.0, -0.5, 0.25, 1.0],
    math.asinh: [-3.0, 0.25, 10.0],
    math.atan: [-3.0, 0.0, 0.25, 100.0],
    math.atanh: [-0.5, 0.0, 0.75],
    math.cbrt: [-8.0, 0.0, 2.0, 27.0],
    math.ceil: [-1.5, -0.25, 0.0, 0.25, 2.5, 100.0],
    math.cos: [-3.0, 0.0, 1.0, 2.5],
    math.cosh: [-3.0, 0.0, 1.0],
    math.degrees: [-3.0, 0.0, 1.0],
    math.erf: [-1.0, 0.0, 0.5, 2.0],
    math.erfc: [-1.0, 0.0, 0.5],
    math.exp: [-3.0, 0.0, 1.0, 4.0],
    math.exp2: [-3.0, 0.0, 1.5],
    math.expm1: [-3.0, 0.5, 2.0],
    math.fabs: [-3.0, -0.0, 2.0],
    math.floor: [-1.5, -0.25, 0.0, 0.25, 2.5, 100.0],
    math.isfinite: [-3.0, math.inf, -math.inf, math.nan],
    math.isinf: [-3.0, math.inf, -math.inf, math.nan],
    math.isnan: [-3.0, math.inf, -math.inf, math.nan],
    math.log: [0.25, 1.0, 20.0],
    math.log10: [0.25, 1.0, 1000.0],
    math.log1p: [-0.5, 0.0, 20.0],
    math.log2: [0.25, 1.0, 1000.0],
    math.radians: [-90.0, 45.0],
    math.sin: [-3.0, 0.0, 1.0, 2.5],
    math.sinh: [-3.0, 0.0, 1.0],
    math.sqrt: [0.0, 2.0, 100.0],
    math.tan: [-1.0, 0.0, 1.0],
    math.tanh: [-1.0, 0.0, 1.0],
    math.trunc: [-1.5, -0.25, 0.0, 0.25, 2.5, 100.0],
    round: [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.25, 100.0],
}
TWO_ARGUMENTS: dict[Callable[..., float], list[tuple[float, float]]] = {
    math.atan2: [(1.0, -1.0), (-1.0, 0.0), (0.0, -0.0)],
    math.copysign: [(1.0, -0.0), (-2.0, 3.0)],
    math.fmod: [(7.5, 2.0), (-7.5, 2.0)],
    math.hypot: [(3.0, 4.0), (0.0, 0.0), (-5.0, 12.0), (math.inf, math.nan)],
    math.isclose: [(1.0, 1.0), (1.0, 1.5), (math.inf, math.inf), (math.inf, 1.0)],
    math.log: [(8.0, 2.0), (100.0, 10.0)],
    math.pow: [(2.0, 0.5), (4.0, -1.0), (3.0, 2.0)],
    max: [(1.0, 2.0), (2.0, 1.0), (0.0, -0.0), (1.0, math.nan), (math.nan, 1.0)],
    min: [(1.0, 2.0), (2.0, 1.0), (0.0, -0.0), (1.0, math.nan), (math.nan, 1.0)],
}  # fmt: skip
INT_RESULT = {math.ceil, math.floor, math.trunc, round}
BOOLEAN_RESULT = {math.isfinite, math.isinf, math.isnan, math.isclose}


def close(x: Any, y: Any, T: type[Numeric]) -> bool:
    if isinstance(y, float) and math.isnan(y):
        return math.isnan(x)
    if y == 0:
        return x == 0 and math.copysign(1, x) == math.copysign(1, y)
    return x == pytest.approx(y, rel=ERROR[T])


def result_type(f: Callable[..., Any], T: type[Numeric]) -> type[Numeric]:
    return Int32 if f in INT_RESULT else Boolean if f in BOOLEAN_RESULT else T


@pytest.mark.parametrize("T", FLOATS, ids=repr)
def test_functions_of_one_float(program: Callable[..., Any], T: type[Numeric]) -> None:
    with program() as p:
        for f in ONE_ARGUMENT:
            p.add(f"of_{f.__name__}", resolve(f), T)
        p.compile()
        for f, xs in ONE_ARGUMENT.items():
            assert p.results[f"of_{f.__name__}"] == [result_type(f, T)]
            xs = [T.concrete(x).value for x in xs]
            for x, (y,) in zip(xs, p.run(f"of_{f.__name__}", [[x] for x in xs]), strict=True):
                assert close(y, f(x), T), f"{f.__name__}({x}) is {f(x)}, not {y}"


@pytest.mark.parametrize("T", FLOATS, ids=repr)
def test_functions_of_two_floats(program: Callable[..., Any], T: type[Numeric]) -> None:
    with program() as p:
        for f in TWO_ARGUMENTS:
            p.add(f"of_{f.__name__}", resolve(f), T, T)
        p.compile()
        for f, rows in TWO_ARGUMENTS.items():
            assert p.results[f"of_{f.__name__}"] == [result_type(f, T)]
            for (x, y), (z,) in zip(rows, p.run(f"of_{f.__name__}", rows), strict=True):
                assert close(z, f(x, y), T), f"{f.__name__}({x}, {y}) is {f(x, y)}, not {z}"


@pytest.mark.parametrize("f", ONE_ARGUMENT, ids=lambda f: f.__name__)
def test_concrete_numbers_give_concrete_results(f: Callable[..., Any]) -> None:
    x = ONE_ARGUMENT[f][-1]
    result = resolve(f)(Float32(x))
    assert type(result) is result_type(f, Float32) and not result.is_dynamic
    assert close(result.value, f(x), Float32)


@pytest.mark.parametrize("f", ONE_ARGUMENT, ids=lambda f: f.__name__)
def test_python_numbers_go_to_the_original(f: Callable[..., Any]) -> None:
    x = ONE_ARGUMENT[f][-1]
    result = resolve(f)(x)
    assert type(result) is type(f(x)) and repr(result) == repr(f(x))


def test_integers_count_as_the_default_float(program: Callable[..., Any]) -> None:
    with program(default_float=Float64) as p:
        sqrt, hypot, floor = resolve(math.sqrt), resolve(math.hypot), resolve(math.floor)
        p.add("f", lambda n, b: (sqrt(n), hypot(n, 3), sqrt(b), floor(n), round(n)), Int8, Boolean)
        assert p.results["f"] == [Float64, Float64, Float64, Int8, Int8]
        assert p.compile().run("f", [[4, True]]) == [(2.0, 5.0, 1.0, 4, 4)]


def test_int_of_bytes_has_room_for_their_difference(program: Callable[..., Any]) -> None:
    integer = resolve(int)
    with program() as p:
        p.add("f", lambda a, b: (integer(a) - integer(b), integer(a) * integer(a)), Uint8, Uint8)
        assert p.results["f"] == [Int32, Int32]
        assert p.compile().run("f", [[100, 200]]) == [(-100, 10000)]


def test_conversions(program: Callable[..., Any]) -> None:
    integer, floating, boolean = resolve(int), resolve(float), resolve(bool)

    def f(x: Numeric, n: Numeric, b: Numeric) -> tuple[Any, ...]:
        return (
            integer(x), integer(n), integer(b), floating(x), floating(n), floating(b),
            boolean(x), boolean(n), boolean(b),
        )  # fmt: skip

    with program() as p:
        p.add("f", f, Float16, Int64, Boolean).compile()
        assert p.results["f"] == [
            Int32, Int64, Int32, Float16, Float32, Float32, Boolean, Boolean, Boolean,
        ]  # fmt: skip
        assert p.run("f", [[-2.75, 2**40, True], [math.nan, 0, False]]) == [
            (-2, 2**40, 1, -2.75, 2.0**40, 1.0, True, True, True),
            (0, 0, 0, pytest.approx(math.nan, nan_ok=True), 0.0, 0.0, True, False, False),
        ]
    assert integer("12", 16) == 18 and integer(2.5) == 2 and floating("0.5") == 0.5
    assert integer(Int32(7)) == 7 and type(integer(Int32(7))) is int
    assert boolean([]) is False and boolean(Int32(0)) is False


def test_round_to_digits_is_pythons(program: Callable[..., Any]) -> None:
    rng = random.Random(5)
    digits = [-3, -1, 0, 1, 2, 3, 5]
    ties = [0.5, 1.5, 2.5, 0.125, 0.375, 2.675, 1.005, 0.285, 0.045, 15.0, 25.0, 1500.0, 2500.0]
    edges = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        1e300,
        4503599627370497.5,
        45035996273704963.0,
    ]
    random_ones = [math.ldexp(rng.uniform(-1, 1), rng.randint(-10, 60)) for _ in range(300)]
    near_ties = [round(rng.uniform(-100, 100), 3) + 0.0005 for _ in range(300)]
    rows = [[x] for x in (*ties, *(-x for x in ties), *edges, *random_ones, *near_ties)]
    with program() as p:
        p.add("f", lambda x: tuple(round(x, n) for n in digits), Float64).compile()
        for (x,), results in zip(rows, p.run("f", rows), strict=True):
            for n, result in zip(digits, results, strict=True):
                expected = round(x, n) if math.isfinite(x) else x
                assert repr(result) == repr(expected), f"round({x}, {n})"


def test_round_of_narrower_floats_and_integers(program: Callable[..., Any]) -> None:
    def f(x: Numeric, h: Numeric, n: Numeric, u: Numeric) -> tuple[Any, ...]:
        return round(x, 1), round(h, 1), round(n, -1), round(u, -1), round(n, 2), round(n, 0)

    with program() as p:
        p.add("f", f, Float32, Float16, Int32, Uint8).compile()
        assert p.results["f"] == [Float32, Float16, Int32, Uint8, Int32, Int32]
        for row in ([2.25, 0.25, -45, 25], [0.0625, -1.55, 155, 254], [-7.75, 3.0, -7, 5]):
            x, h, n, u = row
            h = Float16.concrete(h).value
            assert p.run("f", [row]) == [
                (
                    Float32.concrete(round(x, 1)).value, Float16.concrete(round(h, 1)).value,
                    round(n, -1), round(u, -1) % 256, n, n,
                )
            ]  # fmt: skip
    for n in (-45, 25, 35, 149):
        assert round(Int16(n), -1).value == round(n, -1)
    assert round(Float32(2.675), 2).value == Float32(round(Float32(2.675).value, 2)).value


def test_extremes_of_several(program: Callable[..., Any]) -> None:
    largest, smallest = resolve(max), resolve(min)

    def f(a: Numeric, b: Numeric, x: Numeric) -> tuple[Any, ...]:
        return (
            largest(a, b), smallest([a, b]), largest(a, 7, b), smallest(a, x), largest(a, 0.5),
            smallest((a, b), key=lambda v: -v), largest(b, default_free(b)), largest([a]),
            largest(a < b, a > b),
        )  # fmt: skip

    def default_free(b: Numeric) -> Numeric:
        return b + 1

    with program() as p:
        p.add("f", f, Int8, Int32, Float32).compile()
        assert p.results["f"] == [
            Int32, Int32, Int32, Float32, Float32, Int32, Int32, Int8, Boolean,
        ]  # fmt: skip
        assert p.run("f", [[3, -5, 2.5], [-3, 50, -8.0]]) == [
            (3, -5, 7, 2.5, 3.0, 3, -4, 3, True),
            (50, -3, 50, -8.0, 0.5, 50, 51, -3, True),
        ]
    assert largest([1, 5, 3]) == 5 and largest("abc") == "c" and smallest([], default=4) == 4
    assert largest(3, 1, key=lambda v: -v) == 1
    assert type(largest(Int8(3), Int32(1))) is Int32
    with pytest.raises(ValueError, match="empty"):
        largest([])
    with pytest.raises(TypeError):
        largest(3)


def test_unsigned_extremes_compare_unsigned(program: Callable[..., Any]) -> None:
    with program() as p:
        p.add("f", lambda a, b: (maximum(a, b), minimum(a, b)), Uint32, Uint32).compile()
        assert p.run("f", [[2**31, 1]]) == [(2**31, 1)]


def test_any_all_and_sum(program: Callable[..., Any]) -> None:
    any_, all_, total = resolve(any), resolve(all), resolve(sum)

    def f(a: Numeric, b: Numeric, x: Numeric) -> tuple[Any, ...]:
        assert any_([a, True]) is True and all_([a, 0]) is False
        return (
            any_([a, b]), all_([a, b]), any_(v > 2 for v in (a, b)), all_((a, True, x)),
            any_([0, a]), total([a, b, x]), total([a, b], 10), total([a > 0, b > 0]),
        )  # fmt: skip

    with program() as p:
        p.add("f", f, Int8, Int8, Float32).compile()
        assert p.results["f"][5:] == [Float32, Int8, Int32]
        rows = [[1, 0, 0.5], [3, 2, 0.0], [0, 0, 1.5]]
        for (a, b, x), result in zip(rows, p.run("f", rows), strict=True):
            assert result == (
                any([a, b]), all([a, b]), any(v > 2 for v in (a, b)), all((a, True, x)),
                any([0, a]), sum([a, b, x]), sum([a, b], 10), sum([a > 0, b > 0]),
            )  # fmt: skip
    assert any_([]) is False and all_([]) is True and all_([1, [2]]) is True
    assert any_([Int32(0), Int32(4)]) is True


def test_gcd_lcm_modf_dist_prod_divmod_pow(program: Callable[..., Any]) -> None:
    def f(a: Numeric, b: Numeric, x: Numeric) -> tuple[Any, ...]:
        return (
            resolve(math.gcd)(a, b), resolve(math.gcd)(a, b, 6), resolve(math.lcm)(a, b),
            *resolve(math.modf)(x), resolve(math.dist)((a, x), (b, 0.0)),
            resolve(math.prod)([a, b]), *resolve(divmod)(a, b), resolve(pow)(a, 3), resolve(abs)(b),
        )  # fmt: skip

    with program() as p:
        p.add("f", f, Int32, Int64, Float32).compile()
        for a, b, x in ((12, 18, 2.75), (-45, 25, -0.5), (7, -5, math.inf), (10, 4, -3.0)):
            (result,) = p.run("f", [[a, b, x]])
            whole = (math.gcd(a, b), math.gcd(a, b, 6), math.lcm(a, b))
            rest = (math.prod([a, b]), *divmod(a, b), a**3, abs(b))
            assert result[:3] == whole and result[6:] == rest
            assert [repr(v) for v in result[3:5]] == [repr(v) for v in math.modf(x)]
            assert result[5] == pytest.approx(math.dist((a, x), (b, 0.0)))
        assert p.run("f", [[0, 1, 0.0]])[0][:3] == (1, 1, 0)
    assert resolve(math.gcd)(Int32(12), 18).value == 6 and resolve(math.gcd)(12, 18) == 6


def test_select(program: Callable[..., Any]) -> None:
    def f(c: Numeric, a: Numeric, x: Numeric) -> tuple[Any, ...]:
        assert select(True, a, 3) is a
        return select(c, a, x), select(c, a, 7), select(a, 1, 2), select(False, a, x)

    with program() as p:
        p.add("f", f, Boolean, Int8, Float32).compile()
        assert p.results["f"] == [Float32, Int8, Int32, Float32]
        assert p.run("f", [[True, 0, 0.5], [False, 2, 0.5]]) == [
            (0.0, 0, 2, 0.5), (0.5, 7, 1, 0.5),
        ]  # fmt: skip


def test_elementary_is_for_plugins(program: Callable[..., Any]) -> None:
    with program() as p:
        p.add("f", lambda x: elementary("math.rsqrt", x, fastmath=True), Float32)
        assert "math.rsqrt %1 fastmath<fast> : f32" in p.text()


def test_what_cannot_be_computed_says_so(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(x: Numeric, n: Numeric, s: Numeric) -> Numeric:
            for g in (math.gamma, math.factorial, math.ldexp, math.frexp, math.fsum, math.isqrt):
                with pytest.raises(DSLTypeError, match=f"math.{g.__name__} cannot be comp") as e:
                    resolve(g)(n) if g is not math.ldexp else resolve(g)(x, n)
                assert "sqrt" in str(e.value.hint)
            with pytest.raises(DSLTypeError, match="digits that is known while compiling"):
                round(x, n)
            with pytest.raises(DSLTypeError, match="at most 10 digits, not 11"):
                round(x, 11)
            with pytest.raises(DSLTypeError, match="storage type"):
                resolve(math.sqrt)(s)
            with pytest.raises(DSLTypeError, match="a divisor needs integers"):
                resolve(math.gcd)(x, n)
            return x

        p.add("f", f, Float32, Int32, Float8E5M2)
    assert resolve(math.factorial)(5) == 120


def test_resolve_leaves_other_functions_alone() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

    for f in (print, len, sorted, builtins.abs, sum, divmod, test_select, Int32, Unhashable()):
        assert resolve(f) is f


def test_the_defaults_decide_the_int_of_rounding(program: Callable[..., Any]) -> None:
    with program(default_int=Int64, default_float=Float64) as p:
        p.add("f", lambda x: (round(x), resolve(math.floor)(x), resolve(int)(x)), Float32)
        assert p.results["f"] == [Int64, Int64, Int64]
        assert p.compile().run("f", [[2.0**40]]) == [(2**40, 2**40, 2**40)]
    assert type(round(Float32(2.5))) is Int32 and round(Float32(2.5)).value == 2
    assert math.floor(Float32(-0.5)).value == -1 and math.ceil(Float64(0.5)).value == 1
    assert math.trunc(Float16(-2.5)).value == -2 and math.floor(as_numeric(7)).value == 7
