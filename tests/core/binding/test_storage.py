"""The C storage of arguments is derived from their IR types, and checked where it is declared."""

from dataclasses import dataclass

import numpy as np
import pytest

from basedsl import (
    DSL,
    ArgumentType,
    CompilerBug,
    Constexpr,
    Float64,
    Int64,
    Language,
    mlir_type,
)
from basedsl.binding.storage import codes_of


class Point:
    """Two floats, in Python and in traced code."""

    __dsl_leaf__ = True

    def __init__(self, x, y):
        self.x, self.y = x, y


@dataclass(frozen=True)
class PointArgument(ArgumentType):
    def ir_types(self, ir):
        return [mlir_type(Float64, ir)] * 2

    def proxy(self, values):
        return Point(*map(Float64.from_value, values))

    def pack(self, value):
        return float(value.x), float(value.y)


@dataclass(frozen=True)
class Floats(PointArgument):
    storage = ("f", "f")


@dataclass(frozen=True)
class OneCode(PointArgument):
    storage = ("d",)


@dataclass(frozen=True)
class Three(PointArgument):
    def pack(self, value):
        return 1.0, 2.0, 3.0


@dataclass(frozen=True)
class OfAVector(PointArgument):
    def ir_types(self, ir):
        return [ir.Type.parse("vector<2xf64>")]

    def proxy(self, values):
        return 0


@dataclass(frozen=True)
class VectorDeclared(OfAVector):
    storage = ("d", "d")


def dsl(argument):
    class Geometry(Language):
        name = "geometry"

        def argument_type(self, value, annotation, name):
            return argument() if isinstance(value, Point) else None

    return DSL(Geometry())


def dot(p, q, scale=1.0):
    return (p.x * q.x + p.y * q.y) * scale


def test_derived_storage(tmp_path, monkeypatch):
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path))
    f = dsl(PointArgument).jit(dot)
    for _ in range(3):
        assert f(Point(1, 2), Point(3, 4), 0.5) == 5.5
    made = dsl(PointArgument)
    again = made.jit(dot)
    assert again(Point(1, 2), Point(3, 4), 0.5) == 5.5
    assert made.counts["loaded"] == 1  # from the disk, where MLIR cannot say what the storage is


def test_in_a_tree():
    f = dsl(PointArgument).jit(lambda pair, i: pair[0].x + pair[1][0] + i)
    assert f((Point(1, 2), [3.0]), 4) == 8.0


def refusal(argument, fn=dot):
    with pytest.raises(CompilerBug) as info:
        dsl(argument).jit(fn)(Point(1, 2), Point(3, 4))
    return str(info.value)


def test_other_codes_are_an_error():
    said = refusal(Floats)
    assert "Floats.storage is ('f', 'f'), but f64, f64 take ('d', 'd')" in said
    assert "the DSL 'geometry' of" in said and "leave `storage` out" in said
    assert "it is the argument type of 'p'" in said


def test_a_code_too_few_is_an_error():
    assert "OneCode.storage is ('d',), but f64, f64 take ('d', 'd')" in refusal(OneCode)


def test_a_pack_of_another_length_is_an_error():
    said = refusal(Three)
    assert "Three.pack returned 3 items for 'p', whose storage has 2" in said


def test_an_unknown_type_must_declare_its_storage():
    said = refusal(OfAVector, lambda p, q: 1)
    assert "OfAVector has a value of type vector<2xf64>, whose C storage is not known" in said


def test_declared_storage_is_checked_against_the_compiled_function():
    said = refusal(VectorDeclared, lambda p, q: 1)
    assert "the C storage of the arguments is not that of the compiled function" in said
    assert "note: the storage is d d d d" in said
    assert "<2 x double>" in said


def test_a_memref_takes_its_descriptor():
    @dataclass(frozen=True)
    class Memref(ArgumentType):
        rank: int

        def ir_types(self, ir):
            dims = "?x" * self.rank
            return [ir.Type.parse(f"memref<{dims}i64, strided<[{', '.join('?' * self.rank)}]>>")]

        def proxy(self, values):
            return Lengths(values[0])

        def pack(self, value):
            address = value.__array_interface__["data"][0]
            return address, address, 0, *value.shape, *(s // 8 for s in value.strides)

    class Lengths:
        __dsl_leaf__ = True

        def __init__(self, value):
            self.value = value

        def size(self, axis):
            from basedsl import current_trace

            trace = current_trace("size")
            ir = trace.ir
            at = trace.emit_op(
                "arith.constant",
                ir.IndexType.get(),
                value=ir.IntegerAttr.get(ir.IndexType.get(), axis),
            )
            size = trace.emit_op("memref.dim", ir.IndexType.get(), self.value, at)
            return Int64.from_value(trace.emit_op("arith.index_cast", mlir_type(Int64, ir), size))

    class Arrays(Language):
        name = "arrays"

        def argument_type(self, value, annotation, name):
            return Memref(value.ndim) if isinstance(value, np.ndarray) else None

    @DSL(Arrays()).jit
    def size(before, a, axis: Constexpr, after):
        return before, a.size(axis), after

    a = np.zeros((3, 5), np.int64)
    for axis in (0, 1):
        assert size(7, a, axis, 9) == (7, a.shape[axis], 9)


def test_codes():
    assert codes_of("i1") == codes_of("i4") == ("b",)
    assert codes_of("index") == codes_of("!llvm.ptr<1>") == codes_of("ui64") == ("q",)
    assert codes_of("memref<f32>") == ("q",) * 3
    assert codes_of("memref<4x?xf32, strided<[1, ?]>, 3>") == ("q",) * 7
    assert codes_of("memref<*xf32>") == ("q", "q")
    assert codes_of("tensor<4xf32>") is codes_of("!cute.memref<f16>") is codes_of("i24") is None
