"""Matrix instructions of a warp: `cute.gemm` by mma.sync, `cute.copy` by ldmatrix and stmatrix.

Fragments are consecutive elements in a thread's registers; the instructions take them as words of
32 bits. PTX ISA 9.7.14.5, "Matrix multiply-accumulate operation using mma instruction".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from basedsl_cute.dialect import Operands
from basedsl_cute.lowering.storage import storage_type

if TYPE_CHECKING:
    from basedsl_cute.lowering.rewriter import Rewriter

_ATOM = re.compile(r"mma_(\d+)x(\d+)x(\d+)_(f16|f32|s32)(f16|bf16|tf32|s8|u8)\5\4")
_WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "f32": 32, "s32": 32}
_LANES = 32


def multiply(b: Rewriter, op: Operands) -> None:
    """`nvvm.mma.sync` with operands from, and results to, the fragments' registers."""
    match = _ATOM.fullmatch(op.text("atom") or "")
    assert match is not None, op.text("atom")
    m, n, k = (int(x) for x in match.group(1, 2, 3))
    d_type, ab_type = match[4], match[5]
    as_words = ab_type != "f16"
    a = _registers(b, op.a, b.records[1], m * k * _WIDTH[ab_type] // _LANES // 32, as_words)
    x = _registers(b, op.b, b.records[2], n * k * _WIDTH[ab_type] // _LANES // 32, as_words)
    count = m * n * _WIDTH[d_type] // _LANES // 32
    c = _registers(b, op.c, b.records[3], count, False)
    ir = b.ir
    attributes = {
        "shape": ir.Attribute.parse(f"#nvvm.shape<m = {m}, n = {n}, k = {k}>"),
        "layoutA": ir.Attribute.parse("#nvvm.mma_layout<row>"),
        "layoutB": ir.Attribute.parse("#nvvm.mma_layout<col>"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(a), len(x), len(c)]),
    }
    for name in ("multiplicandAPtxType", "multiplicandBPtxType"):
        attributes[name] = ir.Attribute.parse(f"#nvvm.mma_type<{ab_type}>")
    if d_type == "s32":
        attributes["intOverflowBehavior"] = ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>")
    kind = c[0].type
    struct = ir.Type.parse(f"!llvm.struct<({', '.join([str(kind)] * count)})>")
    made = b.emit("nvvm.mma.sync", [struct], [*a, *x, *c], attributes)
    for i in range(count):
        value = b.extract_value(made, i, kind)
        b.emit("llvm.store", [], [value, b.byte_pointer(op.d, 4 * i)], _word(b))


def load_matrix(b: Rewriter, op: Operands) -> None:
    """`nvvm.ldmatrix`; its words go to the target's registers."""
    number, attributes = _matrix(b, op)
    words = [b.i32] * number
    if number > 1:
        words = [b.ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * number)})>")]
    made = b.emit("nvvm.ldmatrix", words, [op.source], attributes | {"num": b.integer(number, 32)})
    record = b.records[1]
    assert record is not None
    for i in range(number):
        value = made if number == 1 else b.extract_value(made, i, b.i32)
        element = storage_type(b, record.element)
        elements = _from_word(b, value, element)
        b.emit("llvm.store", [], [elements, b.byte_pointer(op.target, 4 * i)], _word(b))


def store_matrix(b: Rewriter, op: Operands) -> None:
    """`nvvm.stmatrix` of the words in the source's registers."""
    number, attributes = _matrix(b, op)
    words = _registers(b, op.source, b.records[0], number, True)
    b.emit("nvvm.stmatrix", [], [op.target, *words], attributes)


def _matrix(b: Rewriter, op: Operands) -> tuple[int, dict[str, Any]]:
    """How many matrices, and what both instructions are told."""
    _, number, *turned = (op.text("atom") or "").split("_")
    parse = b.ir.Attribute.parse
    attributes = {
        "layout": parse(f"#nvvm.mma_layout<{'col' if turned else 'row'}>"),
        "shape": parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        "eltType": parse("#nvvm.ld_st_matrix_elt_type<b16>"),
    }
    return int(number.removeprefix("x")), attributes


def _registers(b: Rewriter, address: Any, record: Any, count: int, as_words: bool) -> list[Any]:
    """The consecutive elements at `address` as registers of 32 bits: a scalar or a pair of f16, or
    with `as_words` an i32.
    """
    element = storage_type(b, record.element)
    per_word = 32 // element.width
    kind = element if per_word == 1 else b.ir.VectorType.get([per_word], element)
    values = [
        b.emit("llvm.load", [kind], [b.byte_pointer(address, 4 * i)], _word(b))
        for i in range(count)
    ]
    return [_to_word(b, value) for value in values] if as_words else values


def _to_word(b: Rewriter, value: Any) -> Any:
    if value.type == b.i32:
        return value
    if getattr(value.type, "shape", None) is None:
        return b.bitcast(value, b.i32)
    one = b.ir.VectorType.get([1], b.i32)
    return b.extract(b.emit("vector.bitcast", [one], [value]), 0)


def _from_word(b: Rewriter, value: Any, element: Any) -> Any:
    if element.width == 32:
        return b.bitcast(value, element)
    one = b.emit("vector.from_elements", [b.ir.VectorType.get([1], b.i32)], [value])
    several = b.ir.VectorType.get([32 // element.width], element)
    return b.emit("vector.bitcast", [several], [one])


def _word(b: Rewriter) -> dict[str, Any]:
    return {"alignment": b.integer(4)}
