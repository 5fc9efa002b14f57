"""Loads, stores and views of elements of 4 and 6 bits, which share bytes.

Two elements of 4 bits are a byte, four of 6 bits are three bytes, the first in the lowest bits.
Vectors begin at a whole byte and are bytes: bitcast, or for 6 bits, which LLVM has no such vectors
of, put together. A single element is some bits of a byte, or of two; to write one, those are read
and written back, so threads must not write elements that share a byte at once.
"""

from __future__ import annotations

from typing import Any

from basedsl import Keep, Replace, RuleResult
from basedsl_cute.dialect.attributes import KEEPS
from basedsl_cute.dialect.ops import Load, Store
from basedsl_cute.lowering.kernel.storage import PACKED_BITS, element_of

_HALF = 4


def is_packed(stored: Any) -> bool:
    """Return True for the storage type of elements that share bytes."""
    return getattr(stored, "width", 8) in PACKED_BITS


def pointer(b: Any, base: Any, index: Any, stored: Any) -> Any:
    """Compute the address of the byte that the element at `index` begins in."""
    place = _ElementPlace(b, index, stored.width)
    return b.element_pointer(base, place.byte, b.i8)


def load_packed(b: Any, op: Load, stored: Any, attributes: dict[str, Any]) -> Any:
    """Load the element, or the elements, as integers of type `stored`."""
    place = _ElementPlace(b, op.index, stored.width)
    kind = op.value.type
    if element_of(kind) == kind:
        word = b.emit("arith.shrui", [b.i16], [_word(b, op, place, attributes), place.shift])
        return b.emit("arith.trunci", [stored], [word])
    (n,) = kind.shape
    if stored.width != _HALF:
        return _load_groups(b, op, place, n, stored, attributes)
    address = b.element_pointer(op.memref, place.byte, b.i8)
    raw = b.emit("llvm.load", [b.ir.VectorType.get([n // 2], b.i8)], [address], attributes)
    return b.emit("vector.bitcast", [b.ir.VectorType.get([n], stored)], [raw])


def store_packed(b: Any, op: Store, raw: Any, attributes: dict[str, Any]) -> None:
    """Store `raw`, the bits of an element or of a vector."""
    stored = element_of(raw.type)
    place = _ElementPlace(b, op.index, stored.width)
    if stored != raw.type:
        (n,) = raw.type.shape
        if stored.width != _HALF:
            _store_groups(b, op, place, n, raw, attributes)
            return
        raw = b.emit("vector.bitcast", [b.ir.VectorType.get([n // 2], b.i8)], [raw])
        address = b.element_pointer(op.memref, place.byte, b.i8)
        b.emit("llvm.store", [], [raw, address], attributes)
        return
    word = _word(b, op, place, {**attributes, KEEPS: b.ir.UnitAttr.get()})
    own = b.constant((1 << stored.width) - 1, b.i16)
    mask = b.emit("arith.shli", [b.i16], [own, place.shift])
    others = b.emit("arith.xori", [b.i16], [mask, b.constant(-1, b.i16)])
    rest = b.emit("arith.andi", [b.i16], [word, others])
    moved = b.emit("arith.shli", [b.i16], [b.emit("arith.extui", [b.i16], [raw]), place.shift])
    word = b.emit("arith.ori", [b.i16], [rest, moved])
    low = b.emit("arith.trunci", [b.i8], [word])
    b.emit("llvm.store", [], [low, b.element_pointer(op.memref, place.byte, b.i8)], attributes)
    if place.last is not None:
        # Of an element within one byte the last byte is the first one too.
        moved = b.emit("arith.shrui", [b.i16], [word, b.constant(8, b.i16)])
        high = b.emit("arith.trunci", [b.i8], [moved])
        last = b.emit("arith.select", [b.i8], [place.crosses(b), high, low])
        b.emit("llvm.store", [], [last, b.element_pointer(op.memref, place.last, b.i8)], attributes)


class _ElementPlace:
    """The place of an element: its first byte, its last (None if that is always the first), and the
    number of its lowest bit in them.
    """

    def __init__(self, b: Any, index: Any, width: int) -> None:
        kind = index.type

        def number(op: str, x: Any, value: int) -> Any:
            return b.emit(f"arith.{op}", [kind], [x, b.constant(value, kind)])

        self.last = None
        if width == _HALF:
            self.byte = number("shrsi", index, 1)
            shift = number("shli", number("andi", index, 1), 2)
        else:
            group = number("muli", number("shrsi", index, 2), 3)
            bit = number("muli", number("andi", index, 3), width)
            shift = number("andi", bit, 7)
            self.byte = b.emit("arith.addi", [kind], [group, number("shrui", bit, 3)])
            end = number("shrui", number("addi", bit, width - 1), 3)
            self.last = b.emit("arith.addi", [kind], [group, end])
        self.shift = b.emit("arith.trunci", [b.i16], [shift])

    def crosses(self, b: Any) -> Any:
        i1 = b.ir.IntegerType.get_signless(1)
        return b.emit("arith.cmpi", [i1], [self.byte, self.last], {"predicate": b.integer(1)})


def _word(b: Any, op: Load | Store, place: _ElementPlace, attributes: dict[str, Any]) -> Any:
    """Load the bytes of a single element, as an i16."""
    address = b.element_pointer(op.memref, place.byte, b.i8)
    low = b.emit("llvm.load", [b.i8], [address], attributes)
    word = b.emit("arith.extui", [b.i16], [low])
    if place.last is None:
        return word
    address = b.element_pointer(op.memref, place.last, b.i8)
    high = b.emit("llvm.load", [b.i8], [address], attributes)
    moved = b.emit("arith.extui", [b.i16], [high])
    moved = b.emit("arith.shli", [b.i16], [moved, b.constant(8, b.i16)])
    return b.emit("arith.ori", [b.i16], [word, moved])


def _load_groups(
    b: Any, op: Load, place: _ElementPlace, n: int, stored: Any, attributes: dict[str, Any]
) -> Any:
    """Load n elements of 6 bits, in groups of four."""
    elements = []
    for first in range(0, n * 6 // 8, 3):
        word = None
        for i, address in enumerate(_bytes(b, op, place, first)):
            byte = b.emit("llvm.load", [b.i8], [address], attributes)
            own = _up(b, b.emit("arith.extui", [b.i32], [byte]), 8 * i)
            word = own if word is None else b.emit("arith.ori", [b.i32], [word, own])
        for i in range(4):
            own = b.emit("arith.shrui", [b.i32], [word, b.constant(6 * i)])
            elements.append(b.emit("arith.trunci", [stored], [own]))
    return b.emit("vector.from_elements", [b.ir.VectorType.get([n], stored)], elements)


def _store_groups(
    b: Any, op: Store, place: _ElementPlace, n: int, raw: Any, attributes: dict[str, Any]
) -> None:
    for group in range(n // 4):
        word = None
        for i in range(4):
            own = b.emit("arith.extui", [b.i32], [b.extract(raw, 4 * group + i)])
            own = _up(b, own, 6 * i)
            word = own if word is None else b.emit("arith.ori", [b.i32], [word, own])
        for i, address in enumerate(_bytes(b, op, place, 3 * group)):
            own = b.emit("arith.shrui", [b.i32], [word, b.constant(8 * i)])
            b.emit("llvm.store", [], [b.emit("arith.trunci", [b.i8], [own]), address], attributes)


def _bytes(b: Any, op: Load | Store, place: _ElementPlace, first: int) -> list[Any]:
    """Compute the addresses of three bytes, `first` bytes behind a place."""
    kind = place.byte.type
    at = [b.emit("arith.addi", [kind], [place.byte, b.constant(first + i, kind)]) for i in range(3)]
    return [b.element_pointer(op.memref, byte, b.i8) for byte in at]


def _up(b: Any, word: Any, bits: int) -> Any:
    return b.emit("arith.shli", [b.i32], [word, b.constant(bits)])


# In PTX ------------------------------------------------------------------------------------------


def recast(b: Any, op: Any) -> RuleResult:
    """Replace `vector.bitcast` between bytes and 4-bit elements by arithmetic on registers; keep
    others. The registers go through a `mov`, without which LLVM would make vectors of i4 of the
    loads and stores, and take those apart; ptxas removes it.
    """
    source, kind = op.operands[0], op.results[0].type
    if _HALF not in (_width(source.type), _width(kind)) or source.type == kind:
        return Keep()
    (n,) = (kind if _width(kind) == _HALF else source.type).shape
    bits = next(w for w in (32, 16, 8) if n * _HALF % w == 0)
    word = b.ir.IntegerType.get_signless(bits)
    words = b.ir.VectorType.get([n * _HALF // bits], word)
    if _width(kind) == _HALF:
        return Replace(_split(b, b.emit("vector.bitcast", [words], [source]), kind, word))
    return Replace(b.emit("vector.bitcast", [kind], [_joined(b, source, words, word)]))


def _width(type: Any) -> int:
    return getattr(element_of(type), "width", 0)


def _split(b: Any, vector: Any, kind: Any, word: Any) -> Any:
    elements = []
    for one in _elements(b, vector):
        one = _moved(b, one)
        for shift in range(0, word.width, _HALF):
            moved = one
            if shift:
                moved = b.emit("arith.shrui", [word], [one, b.constant(shift, word)])
            elements.append(b.emit("arith.trunci", [kind.element_type], [moved]))
    return b.emit("vector.from_elements", [kind], elements)


def _joined(b: Any, vector: Any, words: Any, word: Any) -> Any:
    made, per = [], word.width // _HALF
    elements = [b.emit("arith.extui", [word], [x]) for x in _elements(b, vector)]
    for first in range(0, len(elements), per):
        total = elements[first]
        for i in range(1, per):
            shift = b.constant(i * _HALF, word)
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
