"""Operators in the IR, their locations, known divisors, and the cost of a trace."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from basedsl.errors import DSLTypeError
from basedsl.numeric import (
    Float16,
    Float32,
    Int8,
    Int32,
    Int64,
    Numeric,
    Uint32,
    Uint64,
    as_numeric,
    maximum,
    select,
)
from basedsl.testing import filecheck


def test_an_operator_is_one_op(program: Callable[..., Any]) -> None:
    def f(a: Numeric, b: Numeric, x: Numeric) -> tuple[Any, ...]:
        return a + b, a - b, a * b, a & b, a < b, x + x, x * x, x / x, x < x, x != x

    with program() as p:
        p.add("f", f, Int32, Int32, Float32)
        filecheck(
            p.text(),
            """
            CHECK: %[[A:.*]] = llvm.load {{.*}} -> i32
            CHECK: %[[B:.*]] = llvm.load {{.*}} -> i32
            CHECK: %[[X:.*]] = llvm.load {{.*}} -> f32
            CHECK-NEXT: arith.addi %[[A]], %[[B]] : i32
            CHECK-NEXT: arith.subi %[[A]], %[[B]] : i32
            CHECK-NEXT: arith.muli %[[A]], %[[B]] : i32
            CHECK-NEXT: arith.andi %[[A]], %[[B]] : i32
            CHECK-NEXT: arith.cmpi slt, %[[A]], %[[B]] : i32
            CHECK-NEXT: arith.addf %[[X]], %[[X]] : f32
            CHECK-NEXT: arith.mulf %[[X]], %[[X]] : f32
            CHECK-NEXT: arith.divf %[[X]], %[[X]] : f32
            CHECK-NEXT: arith.cmpf olt, %[[X]], %[[X]] : f32
            CHECK-NEXT: arith.cmpf une, %[[X]], %[[X]] : f32
            CHECK-NEXT: llvm.getelementptr
            """,
        )


def test_division_by_a_literal_is_cheap(program: Callable[..., Any]) -> None:
    with program() as p:
        p.add("f", lambda a, u: (a // 8, a % 8, a // 7, u // 8, u % 7, a % 1), Int32, Uint32)
        filecheck(
            p.text(),
            """
            CHECK: %[[A:.*]] = llvm.load
            CHECK: %[[U:.*]] = llvm.load
            CHECK-NEXT: %[[C3:.*]] = arith.constant 3 : i32
            CHECK-NEXT: arith.shrsi %[[A]], %[[C3]]
            CHECK-NEXT: %[[C7:.*]] = arith.constant 7 : i32
            CHECK-NEXT: arith.andi %[[A]], %[[C7]]
            CHECK-NEXT: %[[C31:.*]] = arith.constant 31 : i32
            CHECK-NEXT: %[[M:.*]] = arith.shrsi %[[A]], %[[C31]]
            CHECK-NEXT: %[[V:.*]] = arith.xori %[[A]], %[[M]]
            CHECK-NEXT: arith.constant 7 : i32
            CHECK-NEXT: %[[Q:.*]] = arith.divsi %[[V]]
            CHECK-NEXT: arith.xori %[[Q]], %[[M]]
            CHECK: arith.shrui %[[U]]
            CHECK: arith.remui %[[U]]
            """,
        )


def test_identities_emit_nothing(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(a: Numeric) -> Numeric:
            for same in (
                a + 0,
                0 + a,
                a - 0,
                a * 1,
                1 * a,
                a // 1,
                a << 0,
                a >> 0,
                +a,
                a.to(Int32),
            ):
                assert same is a
            return a

        p.add("f", f, Int32)
        assert "arith" not in p.text()


def test_known_operands_fold(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(a: Numeric) -> Numeric:
            three = as_numeric(3)
            folded = (three * 4 + 2) // 5
            assert not folded.is_dynamic and folded.value == 2 and folded.weak
            return a + folded

        p.add("f", f, Int64)
        filecheck(p.text(), "CHECK: arith.constant 2 : i64\nCHECK-NEXT: arith.addi")


def test_weakness(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(a: Numeric) -> Numeric:
            weak = Int32.from_value(a.ir_value(), weak=True)
            assert (weak + 1).weak and (weak + weak).weak and (-weak).weak
            assert not (weak + a).weak and not (weak < 1).weak and not weak.to(Int32).weak
            assert type(weak + Int64.concrete(1)) is Int64 and type(weak * 0.5) is Float32
            assert type(weak + Float16.concrete(1)) is Float16
            assert maximum(weak, 3).weak and not maximum(weak, a).weak
            assert select(a > 0, weak, 1).weak and not select(True, weak, a).weak
            assert copy.deepcopy([a])[0] is a and copy.copy(a) is a
            return a

        p.add("f", f, Int32)


def test_ops_carry_the_users_line_and_columns(program: Callable[..., Any]) -> None:
    def f(a: Numeric) -> Numeric:
        return a * (a + 1)

    with program() as p:
        p.add("f", f, Int32)
        text = p.module.operation.get_asm(enable_debug_info=True)
    line = inspect.getsourcelines(f)[1] + 1
    source = "        return a * (a + 1)"
    filecheck(
        text,
        f"""
        CHECK-DAG: loc("{{{{.*}}}}test_ir.py":{line}:{source.index("a + 1") + 1})
        CHECK-DAG: loc("{{{{.*}}}}test_ir.py":{line}:{source.index("a *") + 1})
        """,
    )


def test_ir_value_takes_a_location_and_an_insertion_point(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(a: Numeric) -> Numeric:
            ir = p.trace.ir
            first = (a + 1).ir_value().owner
            where = ir.Location.name("here")
            value = as_numeric(77).ir_value(loc=where, ip=ir.InsertionPoint(first))
            assert value.owner.location == where
            return a

        p.add("f", f, Int32)
        filecheck(p.text(), "CHECK: arith.constant 77\nCHECK: arith.addi")


# Known divisors -------------------------------------------------------------------------------


def test_divisors_follow_arithmetic(program: Callable[..., Any]) -> None:
    with program() as p:

        def f(a: Numeric, b: Numeric) -> Numeric:
            x, y = a.with_divby(24), b.with_divby(16)
            assert (x.divby, a.divby, (x + y).divby, (x - y).divby) == (24, 1, 8, 8)
            assert ((x * y).divby, (x * 5).divby, (3 * a).divby, (x + 12).divby) == (
                384,
                120,
                3,
                12,
            )
            assert ((x + 0).divby, (x + 7).divby, (-x).divby, abs(x).divby) == (24, 1, 24, 24)
            assert ((x // 8).divby, (x // 6).divby, (x // 5).divby, (x % 10).divby) == (3, 4, 1, 2)
            assert x.to(Int64).divby == 24 and x.to(Int8).divby == 8
            assert x.to(Float32).divby == 1 and x.with_divby(9).divby == 72
            assert (y % 8).value == 0 and (y % 16).value == 0 and (y % 32).is_dynamic
            assert (x * 0.5).divby == 1 and (x < y).divby == 1
            return x

        p.add("f", f, Int32, Int32)


def test_exact_division_needs_no_flooring(program: Callable[..., Any]) -> None:
    with program() as p:
        p.add("f", lambda a, u: (a.with_divby(12) // 6, u.with_divby(12) // 4), Int32, Uint64)
        filecheck(
            p.text(),
            """
            CHECK: %[[C6:.*]] = arith.constant 6 : i32
            CHECK-NEXT: arith.divsi %{{.*}}, %[[C6]]
            CHECK-NEXT: %[[C2:.*]] = arith.constant 2 : i64
            CHECK-NEXT: arith.shrui %{{.*}}, %[[C2]]
            CHECK-NEXT: llvm.getelementptr
            """,
        )
        assert p.compile().run("f", [[-36, 48]]) == [(-6, 12)]


def test_a_promised_divisor_is_checked_where_it_can_be() -> None:
    assert Int32(48).with_divby(16).value == 48
    with pytest.raises(DSLTypeError, match="48 is not a multiple of 32"):
        Int32(48).with_divby(32)
    with pytest.raises(DSLTypeError, match="a divisor must be positive, not 0"):
        Int32(48).with_divby(0)
