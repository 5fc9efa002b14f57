"""Arithmetic on vectors: the ops of numbers, on vector types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from basedsl.numeric import Float16, Float32, Int32, Numeric, lanes, maximum, select
from basedsl.testing import filecheck


def on_four_lanes(program: Callable[..., Any], f: Callable[..., Numeric]) -> str:
    """The IR of `f` on four copies of a Float32 and of an Int32; of its result, lane 1 is kept."""

    def scalar(x: Numeric, n: Numeric) -> Numeric:
        with lanes(4) as kit:
            kit.begin()
            vectors = [
                T.from_value(kit.op("vector.broadcast", kit.type_of(T), v.ir_value()))
                for T, v in ((Float32, x), (Int32, n))
            ]
            result = f(*vectors)
            value = result.ir_value()
        ir = kit.ir
        at = {"static_position": ir.DenseI64ArrayAttr.get([1])}
        element = ir.Operation.create(
            "vector.extract", results=[value.type.element_type], operands=[value], attributes=at
        ).result
        return type(result).from_value(element)

    with program() as p:
        assert p.trace.bindings.vector  # registers the dialect
        p.add("f", scalar, Float32, Int32)
        return str(p.text())


def test_operators_selection_and_conversion(program: Callable[..., Any]) -> None:
    def f(x: Numeric, n: Numeric) -> Numeric:
        y = select(x > 0, x * 2.0, n)
        return maximum(y, 1.0).to(Float16)

    filecheck(
        on_four_lanes(program, f),
        """
        CHECK: arith.constant dense<0.000000e+00> : vector<4xf32>
        CHECK: arith.cmpf ogt, {{.*}} : vector<4xf32>
        CHECK: arith.constant dense<2.000000e+00> : vector<4xf32>
        CHECK: arith.mulf {{.*}} : vector<4xf32>
        CHECK: arith.sitofp {{.*}} : vector<4xi32> to vector<4xf32>
        CHECK: arith.select {{.*}} : vector<4xi1>, vector<4xf32>
        CHECK: arith.truncf {{.*}} : vector<4xf32> to vector<4xf16>
        CHECK: vector.extract {{.*}}[1] : f16 from vector<4xf16>
        """,
    )


def test_division_is_not_checked_on_vectors(program: Callable[..., Any]) -> None:
    text = on_four_lanes(program, lambda x, n: n // n)
    assert "cf.assert" not in text
    assert "arith.divsi" in text and "vector<4xi32>" in text


def test_lanes_end_and_do_not_nest(program: Callable[..., Any]) -> None:
    def f(x: Numeric, n: Numeric) -> Numeric:
        with pytest.raises(ValueError, match="do not nest"), lanes(2):
            pass
        return x

    text = on_four_lanes(program, f)
    assert "vector<2x" not in text

    def after(x: Numeric) -> Numeric:
        with lanes(4):
            pass
        return x + x

    with program() as p:
        p.add("f", after, Float32)
        assert "vector" not in p.text()


def test_lanes_need_a_trace() -> None:
    with pytest.raises(Exception, match="arithmetic on vectors"), lanes(4):
        pass
