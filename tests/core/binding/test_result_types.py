"""Results of a DSL's own types: what calls from Python get for a tensor, a handle, a struct."""

import gc
from dataclasses import dataclass

import numpy as np
import pytest

from basedsl import (
    DSL,
    CompilerBug,
    DSLTypeError,
    Float64,
    Int64,
    Language,
    ResultType,
    current_trace,
    memref_array,
)


class Tensor:
    """A memref of floats that the function allocates."""

    __dsl_leaf__ = True

    def __init__(self, value, shape):
        self.value, self.shape = value, shape

    @classmethod
    def filled(cls, shape, number):
        trace = current_trace("filled")
        ir = trace.ir
        dims = "".join(f"{n}x" for n in shape)
        kind = ir.Type.parse(f"memref<{dims}f64>")
        value = trace.emit(
            ir.Operation.create,
            "memref.alloc",
            results=[kind],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        ).result
        number = Float64(number).ir_value()
        for index in np.ndindex(*shape):
            at = [
                trace.emit_op(
                    "arith.constant",
                    ir.IndexType.get(),
                    value=ir.IntegerAttr.get(ir.IndexType.get(), i),
                )
                for i in index
            ]
            trace.emit(ir.Operation.create, "memref.store", operands=[number, value, *at])
        return cls(value, shape)

    def ir_value(self):
        return self.value


class Handle:
    """An address that only the library reads."""

    __dsl_leaf__ = True

    def __init__(self, number):
        self.number = number


@dataclass(frozen=True)
class TensorResult(ResultType):
    shape: tuple
    dtype: type = Float64

    def unpack(self, storage):
        made = memref_array(self.dtype, storage)
        assert made.shape == self.shape
        return made


@dataclass(frozen=True)
class HandleResult(ResultType):
    def ir_values(self, value):
        return [value.number.ir_value()]

    def unpack(self, storage):
        return f"handle {storage[0]}"


class Tensors(Language):
    name = "tensors"
    dialects = (*Language.dialects, "memref")

    def load_dialects(self, bindings):
        _ = bindings.memref

    def result_type(self, value):
        if isinstance(value, Tensor):
            return TensorResult(value.shape)
        return HandleResult() if isinstance(value, Handle) else None


def ones(n):
    return Tensor.filled((2, 3), 1.5), n + 1, {"handle": Handle(n * 2), "static": "text"}


def test_results_of_own_types(tmp_path, monkeypatch):
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path))
    f = DSL(Tensors()).jit(ones)
    for n in (1, 2, 3, 4):
        tensor, number, rest = f(n)
        np.testing.assert_array_equal(tensor, np.full((2, 3), 1.5))
        assert number == n + 1
        assert rest == {"handle": f"handle {2 * n}", "static": "text"}
    part = tensor[1:]
    del tensor
    gc.collect()
    np.testing.assert_array_equal(part, np.full((1, 3), 1.5))
    made = DSL(Tensors())
    np.testing.assert_array_equal(made.jit(ones)(1)[0], np.full((2, 3), 1.5))
    assert made.counts["loaded"] == 1


def test_alone():
    assert DSL(Tensors()).jit(lambda n: Handle(n))(21) == "handle 21"
    made = DSL(Tensors()).jit(lambda n: Tensor.filled((4,), n))(2.5)
    np.testing.assert_array_equal(made, [2.5] * 4)


def test_of_a_type_without_storage():
    class Wrong(Tensors):
        name = "wrong"

        def result_type(self, value):
            return VectorResult() if isinstance(value, Tensor) else None

    class VectorResult(TensorResult):
        def __init__(self):
            super().__init__((4,))

        def ir_values(self, value):
            trace = current_trace("a vector")
            kind = trace.ir.Type.parse("vector<4xf64>")
            number = Float64(1.0).ir_value()
            return [trace.emit_op("vector.broadcast", kind, number)]

    with pytest.raises(CompilerBug, match="a value of type vector<4xf64>, whose C storage") as info:
        DSL(Wrong()).jit(lambda n: Tensor.filled((4,), 1.0))(Int64(1))
    assert "the DSL 'wrong' of" in str(info.value)


def test_without_a_result_type_it_cannot_be_returned():
    class Plain(Tensors):
        name = "plain"

        def result_type(self, value):
            return None

    with pytest.raises(DSLTypeError, match="the result is a Tensor, which cannot be returned"):
        DSL(Plain()).jit(lambda n: Tensor.filled((4,), 1.0))(1)
