"""Operations on one-dimensional MLIR vectors: splat, extract, shuffle, bitcast, min and max."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import Kind, Numeric, as_numeric, current_trace, in_common_type, kit_of

_DYNAMIC = -(2**63)  # of a static position in vector.extract: it is an operand


def splat(element: Any, n: int) -> Any:
    """A vector of `n` copies of `element`."""
    trace = current_trace("a vector")
    kind = trace.ir.VectorType.get([n], element.type)
    return _make("vector.broadcast", [kind], [element])


def to_elements(vector: Any) -> list[Any]:
    """The elements of a vector as scalars."""
    kind = vector.type
    (n,) = kind.shape
    trace = current_trace("the elements of a vector")
    op = trace.ir.Operation.create(
        "vector.to_elements", results=[kind.element_type] * n, operands=[vector], loc=trace.loc()
    )
    return list(op.results)


def from_elements(elements: Sequence[Any]) -> Any:
    """The vector of these scalars."""
    trace = current_trace("a vector")
    kind = trace.ir.VectorType.get([len(elements)], elements[0].type)
    return _make("vector.from_elements", [kind], list(elements))


def extract(vector: Any, position: Any) -> Any:
    """The element at a position: an int, or a dynamic integer."""
    trace = current_trace("an element of a vector")
    ir = trace.ir
    element = vector.type.element_type
    if isinstance(position, int):
        places = ir.DenseI64ArrayAttr.get([position])
        return _make("vector.extract", [element], [vector], {"static_position": places})
    number = as_numeric(position).ir_value()
    index = trace.emit_op("arith.index_cast", ir.IndexType.get(), number)
    places = ir.DenseI64ArrayAttr.get([_DYNAMIC])
    return _make("vector.extract", [element], [vector, index], {"static_position": places})


def pick(vector: Any, positions: Sequence[int]) -> Any:
    """The vector of the elements at these static positions, which may repeat."""
    (n,) = vector.type.shape
    places = list(positions)
    if places == list(range(n)):
        return vector
    trace = current_trace("a part of a vector")
    ir = trace.ir
    if n == 1:
        return splat(extract(vector, 0), len(places))
    kind = ir.VectorType.get([len(places)], vector.type.element_type)
    mask = ir.DenseI64ArrayAttr.get(places)
    return _make("vector.shuffle", [kind], [vector, vector], {"mask": mask})


def bits_as(vector: Any, element: Any, n: int) -> Any:
    """The same bits as a vector of `n` elements of the IR type `element`."""
    trace = current_trace("bits of a vector")
    return _make("vector.bitcast", [trace.ir.VectorType.get([n], element)], [vector])


_EXTREMES = {
    ("max", Kind.SIGNED): "arith.maxsi",
    ("max", Kind.UNSIGNED): "arith.maxui",
    ("max", Kind.BOOLEAN): "arith.ori",
    ("max", Kind.FLOAT): "arith.maxnumf",
    ("min", Kind.SIGNED): "arith.minsi",
    ("min", Kind.UNSIGNED): "arith.minui",
    ("min", Kind.BOOLEAN): "arith.andi",
    ("min", Kind.FLOAT): "arith.minnumf",
}


def combine(which: str, a: Any, b: Any) -> Numeric:
    """The larger (`which` is "max") or smaller ("min") of the numbers a and b, in their common
    type; of a NaN and a number, the number.
    """
    x, y = in_common_type(a, b)
    T = type(x)
    kit = kit_of(current_trace("a choice between dynamic values"))
    values = [x.ir_value(), y.ir_value()]
    kit.begin()
    return T.from_value(kit.op(_EXTREMES[which, T.kind], kit.type_of(T), *values), x.weak)


def _make(name: str, results: list[Any], operands: list[Any], attributes: Any = None) -> Any:
    trace = current_trace("a vector")
    return trace.ir.Operation.create(
        name, results=results, operands=operands, attributes=attributes, loc=trace.loc()
    ).result
