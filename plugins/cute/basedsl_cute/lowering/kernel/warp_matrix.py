"""Matrix instructions of a warp: `cute.gemm` by mma.sync, `cute.copy` by ldmatrix and stmatrix.

Fragments are consecutive elements in a thread's registers; the instructions take them as words of
32 bits. PTX ISA 9.7.14.5, "Matrix multiply-accumulate operation using mma instruction".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from basedsl_cute.dialect.atoms import MMA_ATOMS
from basedsl_cute.dialect.ops import Copy, Gemm
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.lowering.kernel.storage import storage_type
from basedsl_cute.lowering.required import require

if TYPE_CHECKING:
    from basedsl_cute.lowering.kernel.rewriter import Rewriter

_TYPE = "f16|bf16|tf32|f32|f64|s8|u8|s32|e4m3|e5m2"
_ATOM = re.compile(rf"mma_(\d+)x(\d+)x(\d+)_({_TYPE})({_TYPE})({_TYPE})\4")
_WIDTH = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32,
    "e4m3": 8, "e5m2": 8,
}  # fmt: skip


def multiply(b: Rewriter, op: Gemm) -> None:
    """Emit `nvvm.mma.sync` with operands from, and results to, the fragments' registers."""
    match = _ATOM.fullmatch(op.atom)
    assert match is not None, op.atom
    m, n, k = shape = tuple(int(x) for x in match.group(1, 2, 3))
    d_type, a_type, b_type = match.group(4, 5, 6)
    require(MMA_ATOMS[op.atom].requirement, b.target, op.op)
    a = _fragment(b, op.a, 0, m * k, a_type)
    x = _fragment(b, op.b, 1, n * k, b_type)
    c = _fragment(b, op.c, 2, m * n, d_type)
    kind = c[0].type
    struct = b.ir.Type.parse(f"!llvm.struct<({', '.join([str(kind)] * len(c))})>")
    if _is_text(shape, a_type):
        made = _text(b, shape, (d_type, a_type, b_type, d_type), a, x, c)
    else:
        attributes = _mma_attributes(b, shape, d_type, (a_type, b_type), (len(a), len(x), len(c)))
        made = b.emit("nvvm.mma.sync", [struct], [*a, *x, *c], attributes)
    size = max(32, _WIDTH[d_type]) // 8
    for i in range(len(c)):
        value = b.extract_value(made, i, kind)
        b.emit("llvm.store", [], [value, b.byte_pointer(op.d, size * i)], _aligned(b, size))


def _mma_attributes(
    b: Rewriter, shape: Any, d_type: str, kinds: tuple[str, str], sizes: tuple[int, int, int]
) -> dict[str, Any]:
    ir = b.ir
    m, n, k = shape
    attributes = {
        "shape": ir.Attribute.parse(f"#nvvm.shape<m = {m}, n = {n}, k = {k}>"),
        "layoutA": ir.Attribute.parse("#nvvm.mma_layout<row>"),
        "layoutB": ir.Attribute.parse("#nvvm.mma_layout<col>"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes),
    }
    for letter, kind in zip("AB", kinds, strict=True):
        name = f"multiplicand{letter}PtxType"
        attributes[name] = ir.Attribute.parse(f"#nvvm.mma_type<{kind}>")
    if d_type == "s32":
        attributes["intOverflowBehavior"] = ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>")
    return attributes


def _is_text(shape: Any, a_type: str) -> bool:
    """Return True for an instruction that the nvvm dialect does not have."""
    return a_type in ("e4m3", "e5m2") or (a_type == "f64" and shape[0] == 16)


def _text(b: Rewriter, shape: Any, types: Any, a: list[Any], x: list[Any], c: list[Any]) -> Any:
    """Emit an mma.sync as PTX text: D's registers, then those of A, B and C."""
    m, n, k = shape
    at = 0
    groups = []
    for operands in (c, a, x, c):
        numbers = ", ".join(f"${at + i}" for i in range(len(operands)))
        groups.append(f"{{{numbers}}}")
        at += len(operands)
    text = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{'.'.join(types)} {', '.join(groups)};"
    letters = {b.i32: "r", b.f32: "f", b.ir.F64Type.get(): "d"}
    d = letters[c[0].type]
    constraints = [f"={d}"] * len(c) + [letters[value.type] for value in (*a, *x, *c)]
    return b.assembly(text, ",".join(constraints), [c[0].type] * len(c), [*a, *x, *c])


def _fragment(b: Rewriter, address: Any, index: int, elements: int, kind: str) -> list[Any]:
    """Load a lane's registers of an operand with so many `elements` of the PTX type `kind`."""
    bits = elements * _WIDTH[kind] // WARP_SIZE
    if kind == "f64":
        size = {"alignment": b.integer(8)}
        f64 = b.ir.F64Type.get()
        return [
            b.emit("llvm.load", [f64], [b.byte_pointer(address, 8 * i)], size)
            for i in range(bits // 64)
        ]
    as_words = kind not in ("f16", "f32", "s32")
    return _registers(b, address, b.records[1 + index], bits // 32, as_words)


def load_matrix(b: Rewriter, op: Copy) -> None:
    """Emit `nvvm.ldmatrix` and store its words in the target's registers."""
    number, attributes = _matrix(b, op)
    words = [b.i32] * number
    if number > 1:
        words = [b.ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * number)})>")]
    made = b.emit("nvvm.ldmatrix", words, [op.source], attributes | {"num": b.integer(number, 32)})
    values = [made] if number == 1 else [b.extract_value(made, i, b.i32) for i in range(number)]
    _store_words(b, op, values)


def load_byte_matrix(b: Rewriter, op: Copy) -> None:
    """Emit `nvvm.ldmatrix` of 16x16 matrices of bytes. A lane gets four rows of a column in a word,
    and of the column 8 to the right in the next; the atom gives two rows of both columns in a word,
    as stmatrix takes them and CuTe's copy_sm100.hpp makes them.
    """
    number = int(op.atom[-1])
    parse = b.ir.Attribute.parse
    attributes = {
        "layout": parse("#nvvm.mma_layout<col>"),
        "shape": parse("#nvvm.ld_st_matrix_shape<m = 16, n = 16>"),
        "eltType": parse(f"#nvvm.ld_st_matrix_elt_type<{_byte_type(op.atom)}>"),
        "num": b.integer(number, 32),
    }
    words = [b.ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * 2 * number)})>")]
    made = b.emit("nvvm.ldmatrix", words, [op.source], attributes)
    half, low, high = (b.constant(x) for x in (16, 0xFFFF, -0x10000))
    values = []
    for i in range(number):
        first, second = (b.extract_value(made, 2 * i + j, b.i32) for j in range(2))
        for left, right in (
            (("arith.andi", low), ("arith.shli", half)),
            (("arith.shrui", half), ("arith.andi", high)),
        ):
            parts = [
                b.emit(name, [b.i32], [word, by])
                for (name, by), word in ((left, first), (right, second))
            ]
            values.append(b.emit("arith.ori", [b.i32], parts))
    _store_words(b, op, values)


def _store_words(b: Rewriter, op: Copy, values: list[Any]) -> None:
    record = b.records[1]
    assert record is not None
    element = _whole_bytes(b, storage_type(b, record.element))
    for i, value in enumerate(values):
        elements = _from_word(b, value, element)
        b.emit("llvm.store", [], [elements, b.byte_pointer(op.target, 4 * i)], _word(b))


def store_matrix(b: Rewriter, op: Copy) -> None:
    """Emit `nvvm.stmatrix` of the words in the source's registers."""
    number, attributes = _matrix(b, op)
    words = _registers(b, op.source, b.records[0], number, True)
    b.emit("nvvm.stmatrix", [], [op.target, *words], attributes)


def store_byte_matrix(b: Rewriter, op: Copy) -> None:
    """Emit `nvvm.stmatrix` of 16x8 matrices of bytes, transposed."""
    number = int(op.atom[-1])
    parse = b.ir.Attribute.parse
    attributes = {
        "layout": parse("#nvvm.mma_layout<col>"),
        "shape": parse("#nvvm.ld_st_matrix_shape<m = 16, n = 8>"),
        "eltType": parse("#nvvm.ld_st_matrix_elt_type<b8>"),
    }
    words = _registers(b, op.source, b.records[0], number, True)
    b.emit("nvvm.stmatrix", [], [op.target, *words], attributes)


_PACKED = {"4": "b8x16.b4x16_p64", "6": "b8x16.b6x16_p32"}


def _byte_type(atom: str) -> str:
    """Return PTX's types of a load of bytes, by the bits of the elements that it unpacks."""
    return _PACKED.get(atom.partition("_b")[2][:1], "b8")


def _matrix(b: Rewriter, op: Copy) -> tuple[int, dict[str, Any]]:
    """Return the number of matrices and the attributes that both instructions share."""
    stem, _, rest = op.atom.partition("_x")
    unpacks = "_b" in stem
    parse = b.ir.Attribute.parse
    attributes = {
        "layout": parse(f"#nvvm.mma_layout<{'col' if rest.endswith('trans') else 'row'}>"),
        "shape": parse(f"#nvvm.ld_st_matrix_shape<m = 8, n = {16 if unpacks else 8}>"),
        "eltType": parse(
            f"#nvvm.ld_st_matrix_elt_type<{_byte_type(op.atom) if unpacks else 'b16'}>"
        ),
    }
    return int(rest[0]), attributes


def _registers(b: Rewriter, address: Any, record: Any, count: int, as_words: bool) -> list[Any]:
    """Load the consecutive elements at `address` as registers of 32 bits: a scalar or a pair of
    f16, or with `as_words` an i32.
    """
    element = _whole_bytes(b, storage_type(b, record.element))
    per_word = 32 // element.width
    kind = element if per_word == 1 else b.ir.VectorType.get([per_word], element)
    values = [
        b.emit("llvm.load", [kind], [b.byte_pointer(address, 4 * i)], _word(b))
        for i in range(count)
    ]
    return [_to_word(b, value) for value in values] if as_words else values


def _whole_bytes(b: Rewriter, element: Any) -> Any:
    """Return the type of what memory holds: bytes for elements that share them."""
    return b.i8 if element.width < 8 else element


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
    return _aligned(b, 4)


def _aligned(b: Rewriter, size: int) -> dict[str, Any]:
    return {"alignment": b.integer(size)}
