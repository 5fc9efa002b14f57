"""Dynamic values where Python needs a number now, values that leave their region, and checks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

from basedsl.errors import DSLError, DSLSyntaxError, DSLTypeError
from basedsl.location import Span
from basedsl.numeric import (
    Boolean,
    Float32,
    Int8,
    Int32,
    Int64,
    Numeric,
    Uint32,
    Uint64,
    as_numeric,
    is_dynamic,
    resolve,
)
from basedsl.testing import filecheck


def helper(x: Numeric) -> int:
    if x > 3:  # the line the error points at
        return 1
    return 0


def test_a_dynamic_condition_points_into_the_helper(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(x: Numeric) -> Numeric:
            with pytest.raises(
                DSLError, match="a dynamic Boolean is used as a Python condition"
            ) as e:
                helper(x)
            text = str(e.value)
            assert "if x > 3:  # the line the error points at" in text
            assert f"test_errors.py:{inspect.getsourcelines(helper)[1] + 1}" in text
            assert "hint: decorate `helper` with @jit" in text and "Constexpr" in text
            with pytest.raises(DSLError, match="a dynamic Int32 is used as a Python condition"):
                bool(x)
            with pytest.raises(DSLError, match="a dynamic Boolean is used"):
                _ = x in [x + 1]
            return x

        p.add("f", f, Int32)


def test_a_dynamic_number_is_no_python_number(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(n: Numeric, x: Numeric) -> Numeric:
            with pytest.raises(DSLError, match="dynamic Int32 cannot become a Python int") as e:
                int(n)
            assert "x.to(Int32)" in str(e.value.hint)
            with pytest.raises(DSLError, match="dynamic Float32 cannot become a Python float"):
                float(x)
            with pytest.raises(DSLError, match="dynamic Float32 cannot become a Python float"):
                math.sqrt(x)
            for use in (lambda: [1, 2, 3][n], lambda: range(n), lambda: [0] * n):
                with pytest.raises(DSLError, match="is used where Python needs a number now"):
                    use()
            return n

        p.add("f", f, Int32, Float32)


def test_dynamic_values_print_as_question_marks(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(n: Numeric, x: Numeric) -> Numeric:
            made = ValueError(str(n), repr(n), f"{x:>3}", f"{n.with_divby(8)}", repr(x < x))
            assert ["".join([one]) for one in made.args] == [
                *("?", "Int32(?)", "  ?", "?{div=8}", "Boolean(?)")
            ]
            for asked in (lambda: str(n) == "2", lambda: len(str(n)), lambda: {str(n): 1}):
                with pytest.raises(DSLTypeError, match="a text that shows a value of run time is"):
                    asked()
            with pytest.raises(DSLTypeError, match="'bit_length' of a number is not known"):
                n.bit_length()
            with pytest.raises(DSLTypeError, match="'hex' of a number is not known"):
                hasattr(x, "hex")
            assert not hasattr(n, "shape") and not hasattr(Int32(1), "hex")
            assert is_dynamic(n) and n.is_dynamic and is_dynamic(Int32(5))
            assert not is_dynamic(as_numeric(5))
            with pytest.raises(DSLError, match="is looked up in a dict or a set"):
                hash(n)
            with pytest.raises(DSLTypeError, match="exists only while tracing"):
                n.__reduce__()
            return n

        p.add("f", f, Int32, Float32)


def test_a_value_does_not_leave_its_region(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(x: Numeric) -> Numeric:
            span = Span(__file__, inspect.getsourcelines(helper)[1] + 1)
            with p.trace.inside("loop", span):
                inner = x + 1
                assert (inner + x).is_dynamic
            for use in (
                lambda: inner + x, lambda: x + inner, lambda: 1 - inner, lambda: -inner,
                lambda: inner.to(Float32), lambda: inner.ir_value(), lambda: inner < x,
                lambda: resolve(max)(inner, 2), lambda: resolve(math.sqrt)(inner),
            ):  # fmt: skip
                with pytest.raises(DSLError, match="an Int32 computed inside the loop at") as e:
                    use()
                text = str(e.value)
                assert "is used outside of it" in text and "if x > 3" in text
                assert "hint: assign it to a variable" in text
            return x

        p.add("f", f, Int32)


def test_a_dynamic_value_means_nothing_in_plain_python(program: Callable[..., Any]) -> None:
    kept: list[Numeric] = []
    with program() as p:
        p.add("f", lambda x: kept.append(x) or x, Int32)
    (x,) = kept
    for use in (lambda: x + 1, lambda: x.to(Float32), lambda: -x):
        with pytest.raises(DSLError, match="works only inside a function that is being compiled"):
            use()
    with pytest.raises(DSLError, match=r"Int32\.mlir_type works only inside"):
        _ = Int32.mlir_type


def test_nothing_is_emitted_where_the_trace_forbids_it(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(x: Numeric) -> Numeric:
            with p.trace.forbidding("with", None):
                for use in (lambda: x + 1, lambda: x.to(Float32), lambda: Int32(5), lambda: -x):
                    with pytest.raises(DSLSyntaxError, match="computed inside `with`"):
                        use()
                assert Int32.concrete(2) + 3 == 5  # known while compiling: emits nothing
            return x

        p.add("f", f, Int32)


def test_literals_that_do_not_fit(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(x: Numeric, u: Numeric) -> Numeric:
            with pytest.raises(DSLTypeError, match="300 does not fit Int8") as e:
                x + 300
            assert "x + 300" in str(e.value)
            with pytest.raises(DSLTypeError, match="-1 does not fit Uint32"):
                u * -1
            with pytest.raises(DSLTypeError, match="no type holds both"):
                u.to(Uint64) + x
            with pytest.raises(DSLError, match="integer division or modulo by zero"):
                x // 0
            with pytest.raises(DSLError, match="integer division or modulo by zero"):
                x % 0
            with pytest.raises(DSLError, match="negative shift count -1"):
                x << -1
            with pytest.raises(DSLTypeError, match="Int32 is i32 in MLIR, the value is i8"):
                Int32(x.ir_value())
            for compared, answer in ((x < 300, True), (u == -1, False), (300 <= x, False)):
                assert type(compared) is Boolean and compared.value is answer
            return x

        p.add("f", f, Int8, Uint32)


# Errors at run time -------------------------------------------------------------------------


def test_integer_checks_become_assertions(program: Callable[..., Any]) -> None:
    def f(x: Numeric, n: Numeric, u: Numeric) -> tuple[Any, ...]:
        return x // n, x % u.to(Int64), x << n, x**n, x // 4, x << 3, u >> u, u // u

    with program(checks=True) as p:
        p.add("f", f, Int32, Int32, Uint32)
        filecheck(
            p.text(),
            """
            CHECK: cf.assert %{{.*}}, "ZeroDivisionError: integer division or modulo by zero"
            CHECK: arith.divsi
            CHECK: cf.assert %{{.*}}, "ZeroDivisionError: integer division or modulo by zero"
            CHECK: arith.remsi
            CHECK: cf.assert %{{.*}}, "ValueError: negative shift count"
            CHECK: arith.shli
            CHECK: cf.assert %{{.*}}, "ValueError: a negative exponent makes
            CHECK: scf.while
            CHECK: cf.assert %{{.*}}, "ZeroDivisionError: integer division or modulo by zero"
            CHECK: arith.divui
            CHECK-NOT: cf.assert
            """,
        )


def test_float_checks_become_assertions(program: Callable[..., Any]) -> None:
    def f(x: Numeric, y: Numeric, n: Numeric) -> tuple[Any, ...]:
        return (
            x / y, n / 2, x // y, x**y, round(x), resolve(math.sqrt)(x), resolve(math.exp)(x),
            x / 2, x % 3,
        )  # fmt: skip

    with program(float_checks=True) as p:
        p.add("f", f, Float32, Float32, Int32)
        filecheck(
            p.text(),
            """
            CHECK: cf.assert %{{.*}}, "ZeroDivisionError: float division by zero"
            CHECK: arith.divf
            CHECK: arith.sitofp
            CHECK: arith.divf
            CHECK: cf.assert %{{.*}}, "ZeroDivisionError: float floor division or modulo by zero"
            CHECK: arith.remf
            CHECK: cf.assert %{{.*}}, "ValueError: a negative number to a fractional power is
            CHECK: cf.assert %{{.*}}, "ZeroDivisionError: 0.0 cannot be raised to a negative power"
            CHECK: math.powf
            CHECK: cf.assert %{{.*}}, "ValueError: cannot convert float NaN to integer"
            CHECK: cf.assert %{{.*}}, "OverflowError: cannot convert a float of this size to Int32"
            CHECK: math.sqrt
            CHECK: cf.assert %{{.*}}, "ValueError: math domain error"
            CHECK: math.exp
            CHECK: cf.assert %{{.*}}, "OverflowError: math range error"
            CHECK-NOT: cf.assert
            """,
        )
        assert p.module.operation.verify()


@pytest.mark.parametrize(
    "traits", [{"checks": False}, {"float_checks": False}], ids=["integers", "floats"]
)
def test_checks_can_be_left_out(program: Callable[..., Any], traits: dict[str, bool]) -> None:
    with program(**traits) as p:
        if "checks" in traits:
            p.add("f", lambda x, y: (x // y, x << y, x**y), Int32, Int32)
        else:
            p.add("f", lambda x, y: (x // y, x / y, resolve(math.log)(x)), Float32, Float32)
        assert "cf.assert" not in p.text()
