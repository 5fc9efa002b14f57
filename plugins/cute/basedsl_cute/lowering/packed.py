"""Elements of 4 bits, two to a byte: what loads, stores and views of them become.

Vectors begin at a whole byte and are bytes, bitcast. A single element is its half of a byte; to
write one, its byte is read and written back, so threads must not write halves of one byte at once.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.dialect import Operands
from basedsl_cute.lowering.storage import PACKED_BITS, element_of


def is_packed(stored: Any) -> bool:
    """Whether a storage type is that of elements which share a byte."""
    return getattr(stored, "width", 8) == PACKED_BITS


def pointer(b: Any, base: Any, index: Any) -> Any:
    """The byte that holds the element at `index`."""
    one = b.constant(1, index.type)
    return b.element_pointer(base, b.emit("arith.shrsi", [index.type], [index, one]), b.i8)


def load(b: Any, op: Operands, attributes: dict[str, Any]) -> Any:
    """The element, or the elements, as i4."""
    half = b.ir.IntegerType.get_signless(PACKED_BITS)
    address = pointer(b, op.memref, op.index)
    kind = op.value.type
    if element_of(kind) == kind:
        byte = b.emit("llvm.load", [b.i8], [address], attributes)
        own = b.emit("arith.shrui", [b.i8], [byte, _shift(b, op)])
        return b.emit("arith.trunci", [half], [own])
    (n,) = kind.shape
    raw = b.emit("llvm.load", [b.ir.VectorType.get([n // 2], b.i8)], [address], attributes)
    return b.emit("vector.bitcast", [b.ir.VectorType.get([n], half)], [raw])


def store(b: Any, op: Operands, raw: Any, attributes: dict[str, Any]) -> None:
    """Write `raw`, the i4 of an element or of a vector."""
    address = pointer(b, op.memref, op.index)
    if element_of(raw.type) != raw.type:
        (n,) = raw.type.shape
        raw = b.emit("vector.bitcast", [b.ir.VectorType.get([n // 2], b.i8)], [raw])
        b.emit("llvm.store", [], [raw, address], attributes)
        return
    shift = _shift(b, op)
    byte = b.emit("llvm.load", [b.i8], [address], attributes)
    mask = b.emit("arith.shli", [b.i8], [b.constant(15, b.i8), shift])
    others = b.emit("arith.xori", [b.i8], [mask, b.constant(-1, b.i8)])
    rest = b.emit("arith.andi", [b.i8], [byte, others])
    own = b.emit("arith.shli", [b.i8], [b.emit("arith.extui", [b.i8], [raw]), shift])
    b.emit("llvm.store", [], [b.emit("arith.ori", [b.i8], [rest, own]), address], attributes)


def _shift(b: Any, op: Operands) -> Any:
    """By how many bits the element lies up in its byte: 0 or 4."""
    index = op.index
    kind = index.type
    odd = b.emit("arith.andi", [kind], [index, b.constant(1, kind)])
    bits = b.emit("arith.shli", [kind], [odd, b.constant(2, kind)])
    return b.emit("arith.trunci", [b.i8], [bits])


# In PTX ------------------------------------------------------------------------------------------


def recast(b: Any, op: Any) -> Any:
    """`vector.bitcast` between bytes and 4-bit elements in arithmetic on whole registers; None for
    others. The registers go through a `mov`, without which LLVM would make vectors of i4 of the
    loads and stores, and take those apart; ptxas removes it.
    """
    source, kind = op.operands[0], op.results[0].type
    if PACKED_BITS not in (_width(source.type), _width(kind)) or source.type == kind:
        return None
    (n,) = (kind if _width(kind) == PACKED_BITS else source.type).shape
    bits = next(w for w in (32, 16, 8) if n * PACKED_BITS % w == 0)
    word = b.ir.IntegerType.get_signless(bits)
    words = b.ir.VectorType.get([n * PACKED_BITS // bits], word)
    if _width(kind) == PACKED_BITS:
        return _split(b, b.emit("vector.bitcast", [words], [source]), kind, word)
    return b.emit("vector.bitcast", [kind], [_joined(b, source, words, word)])


def _width(type: Any) -> int:
    return getattr(element_of(type), "width", 0)


def _split(b: Any, vector: Any, kind: Any, word: Any) -> Any:
    elements = []
    for one in _elements(b, vector):
        one = _moved(b, one)
        for shift in range(0, word.width, PACKED_BITS):
            moved = one
            if shift:
                moved = b.emit("arith.shrui", [word], [one, b.constant(shift, word)])
            elements.append(b.emit("arith.trunci", [kind.element_type], [moved]))
    return b.emit("vector.from_elements", [kind], elements)


def _joined(b: Any, vector: Any, words: Any, word: Any) -> Any:
    made, per = [], word.width // PACKED_BITS
    elements = [b.emit("arith.extui", [word], [x]) for x in _elements(b, vector)]
    for first in range(0, len(elements), per):
        total = elements[first]
        for i in range(1, per):
            shift = b.constant(i * PACKED_BITS, word)
            moved = b.emit("arith.shli", [word], [elements[first + i], shift])
            total = b.emit("arith.ori", [word], [total, moved])
        made.append(_moved(b, total))
    return b.emit("vector.from_elements", [words], made)


def _moved(b: Any, value: Any) -> Any:
    kind = value.type
    if kind.width == 8:
        return value
    register = {32: "r", 16: "h"}[kind.width]
    text = f"mov.b{kind.width} $0, $1;"
    return b.assembly(text, f"={register},{register}", [kind], [value])


def _elements(b: Any, vector: Any) -> list[Any]:
    return [b.extract(vector, i) for i in range(vector.type.shape[0])]
