"""The laws of the promotion table, and its rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from basedsl.errors import DSLTypeError
from basedsl.numeric import (
    TYPES,
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
    as_numeric,
    join_types,
    promote,
    promote_types,
    promotion_table,
)

ARITHMETIC = [T for T in TYPES.values() if T.format.arithmetic]
ALL = list(TYPES.values())


def promoted(a: object, b: object) -> type[Numeric] | None:
    try:
        return promote(a, b)
    except DSLTypeError:
        return None


def test_promotion_is_commutative_and_idempotent() -> None:
    for a, b in itertools.product(ALL, repeat=2):
        assert promoted(a, b) is promoted(b, a)
        T = promoted(a, b)
        if T is not None:
            assert promoted(T, a) is T and promoted(T, b) is T
    for a in ALL:
        assert promote(a, a) is a


def test_promotion_is_associative_where_it_is_defined() -> None:
    # Two halves of different formats meet in Float32, which depends on who meets first only if
    # an integer is among three: it never is wider than a float.
    for a, b, c in itertools.product(ARITHMETIC, repeat=3):
        ab, bc = promoted(a, b), promoted(b, c)
        if ab is not None and bc is not None:
            left, right = promoted(ab, c), promoted(a, bc)
            assert left is right or None in (left, right)


def test_an_integer_promotion_holds_both_ranges() -> None:
    integers = [T for T in ARITHMETIC if T.is_integer]
    for a, b in itertools.product(integers, repeat=2):
        T = promoted(a, b)
        if T is not None:
            assert T.min <= min(a.min, b.min) and T.max >= max(a.max, b.max)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (Uint8, Int16, Int16),
        (Uint8, Int8, Int16),
        (Uint32, Int32, Int64),
        (Uint16, Int64, Int64),
        (Uint64, Int128, Int128),
        (Boolean, Int8, Int8),
        (Boolean, Float16, Float16),
        (Int64, Float16, Float16),
        (Float16, BFloat16, Float32),
        (BFloat16, Float64, Float64),
        (Uint8, Uint64, Uint64),
    ],
)
def test_rows(a: type[Numeric], b: type[Numeric], result: type[Numeric]) -> None:
    assert promote(a, b) is result


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (Int8, 1, Int8),
        (Int64, 1, Int64),
        (Float16, 1, Float16),
        (Float16, 1.0, Float16),
        (Int8, 1.0, Float32),
        (Int64, 0.5, Float32),
        (Boolean, 1, Int32),
        (Boolean, 0.5, Float32),
        (Boolean, True, Boolean),
        (Int8, True, Int8),
        (Float64, np.float32(1), Float64),
        (Int8, np.int64(1), Int64),
        (Int8(1), as_numeric(1), Int8),
        (1, 2.0, Float32),
    ],
)
def test_literals_adapt(a: object, b: object, result: type[Numeric]) -> None:
    assert promote(a, b) is promote(b, a) is result


def test_errors_say_what_to_write() -> None:
    with pytest.raises(DSLTypeError, match="no type holds both Uint64 and Int64") as error:
        promote(Uint64, Int64)
    assert error.value.hint == "convert one of them: x.to(Int64) or x.to(Uint64)"
    for storage, wide in ((Float8E5M2, "Float32"), (Int4, "Int32"), (TFloat32, "Float32")):
        with pytest.raises(DSLTypeError, match=f"{storage.__name__} is a storage type") as error:
            promote(storage, Float64 if storage.is_float else Int64)
        assert error.value.hint == f"convert it first: x.to({wide})"


def test_promote_types_keeps_weakness_of_two_weak_sides() -> None:
    assert promote_types(Int32, True, Int64, False) == (Int64, False)
    assert promote_types(Int32, True, Int8, False) == (Int8, False)
    assert promote_types(Int32, True, Float32, True) == (Float32, True)
    assert promote_types(Int32, False, Float32, False) == (Float32, False)


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        ((Int32, False), (Int32, True), (Int32, False)),
        ((Int32, True), (Int32, True), (Int32, True)),
        ((Int32, True), (Int8, False), (Int8, False)),
        ((Int32, True), (Float16, False), (Float16, False)),
        ((Int32, True), (Float32, True), (Float32, True)),
        ((Float32, True), (Float16, False), (Float16, False)),
        ((Float32, True), (Int32, False), None),
        ((Int8, False), (Int32, False), (Int32, False)),
        ((Uint8, False), (Int32, False), None),
        ((Float16, False), (Float64, False), (Float64, False)),
        ((Float16, False), (BFloat16, False), (Float32, False)),
        ((Int32, False), (Float32, False), None),
        ((Boolean, False), (Int32, True), None),
        ((Boolean, False), (Int32, False), None),
        ((Boolean, False), (Boolean, True), (Boolean, False)),
        ((Float8E5M2, False), (Float32, False), None),
        ((Float8E5M2, False), (Float32, True), (Float8E5M2, False)),
        ((Float8E5M2, False), (Float8E5M2, False), (Float8E5M2, False)),
    ],
)
def test_join_of_a_variable(a: tuple, b: tuple, joined: tuple | None) -> None:
    assert join_types(*a, *b) == join_types(*b, *a) == joined


def test_join_never_narrows_what_is_only_known_at_run_time() -> None:
    assert join_types(Int32, True, Int8, False, dynamic=True) == (Int32, False)
    assert join_types(Int16, False, Int32, True, dynamic=True) == (Int32, False)
    assert join_types(Float32, True, Float16, False, dynamic=True) == (Float32, False)
    assert join_types(Int32, True, Int64, False, dynamic=True) == (Int64, False)
    assert join_types(Int32, True, Float16, False, dynamic=True) == (Float16, False)


def test_a_weak_dynamic_number_is_not_narrowed(program) -> None:
    with program() as p:

        def f(n: Numeric, x: Numeric, y: Numeric):
            weak = type(n).from_value(n.ir_value(), weak=True)
            assert promote(weak, x) is Int32 and promote(weak, Int64) is Int64
            assert promote(weak, y) is Float16
            return weak + x, weak + weak, weak + y

        p.add("f", f, Int32, Int8, Float16).compile()
        assert p.results["f"] == [Int32, Int32, Float16]
        assert p.run("f", [(1000, 3, 0.5)]) == [(1003, 2000, 1000.5)]


def test_default_types_are_the_running_dsls(program) -> None:
    with program(default_int=Int64, default_float=Float64) as p:
        assert promote(Int8, 0.5) is Float64
        assert type(as_numeric(2**40)) is Int64

        def f(a: Numeric, b: Numeric):
            return a / b, (a < b) + (a < b), round(a / b)

        p.add("f", f, Int32, Int32)
        assert p.results["f"] == [Float64, Int64, Int64]


def test_the_table_prints() -> None:
    text = promotion_table((Boolean, Int8, Uint64, Float16))
    assert text.splitlines() == [
        "        Boolean Int8    Uint64  Float16",
        "Boolean Boolean Int8    Uint64  Float16",
        "Int8    Int8    Int8    -       Float16",
        "Uint64  Uint64  -       Uint64  Float16",
        "Float16 Float16 Float16 Float16 Float16",
    ]
    assert len(promotion_table().splitlines()) == len(ARITHMETIC) + 1


def test_every_row_of_the_documented_table_names_real_types() -> None:
    assert {Uint32, Int64} <= set(ARITHMETIC)
    assert not any(T.format.arithmetic for T in (Int4, Float8E5M2, TFloat32))
