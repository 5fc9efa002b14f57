"""`cute.wgmma` on its way to PTX: tensors become addresses, then one block of inline PTX.

A block does all steps of K, so that the accumulator's registers are named once. They are read from
and written back to the thread's stack slot, which LLVM promotes: between two blocks nothing moves.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.dialect import Operands
from basedsl_cute.dialect.warpgroup import WGMMA_TYPES
from basedsl_cute.lowering.builder import Builder
from basedsl_cute.lowering.rewriter import Rewriter

_PTX_TYPES = {
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2",
    "i8": "s8", "ui8": "u8",
}  # fmt: skip


def keep(b: Rewriter, op: Operands) -> None:
    """The same op on addresses."""
    operands = [op.acc, op.a, op.b]
    if op.accumulate is not None:
        operands.append(op.accumulate)
    names = op.spec.attributes
    b.emit(op.spec.full_name, [], operands, {name: getattr(op, name) for name in names})


def to_ptx(b: Builder, op: Any) -> None:
    """`wgmma.mma_async` for each step, in one block of inline PTX."""
    ir = b.ir
    attributes = op.attributes
    n = ir.IntegerAttr(attributes["n"]).value
    kinds = [ir.StringAttr(attributes[name]).value for name in ("a_type", "b_type")]
    majors = [ir.StringAttr(attributes[name]).value for name in ("a_major", "b_major")]
    steps = [list(ir.DenseI64ArrayAttr(attributes[name])) for name in ("a_steps", "b_steps")]
    acc, a, descriptor_b, *flag = op.operands
    k, (kind, *_) = WGMMA_TYPES[kinds[0]]
    count = n // 2
    element = b.f32 if kind == "f32" else b.i32
    letter = "f" if kind == "f32" else "r"
    whole = ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * count)})>")
    before = b.emit("llvm.load", [whole], [acc], {"alignment": b.integer(4)})
    operands = [b.extract_value(before, i, element) for i in range(count)]
    constraints = [f"={letter}"] * count + [str(i) for i in range(count)]
    in_registers = str(a.type) != "i64"
    if in_registers:
        given = [_registers(b, a, step, k, kinds[0]) for step in steps[0]]
        operands += [x for group in given for x in group]
        constraints += ["r"] * (4 * len(given))
    else:
        operands.append(a)
        constraints.append("l")
    operands.append(descriptor_b)
    constraints.append("l")
    if flag:
        operands.append(b.emit("arith.extui", [b.i32], [flag[0]]))
        constraints.append("r")
    text = _text(n, k, kind, kinds, majors, steps, in_registers, bool(flag))
    results = [element] * count
    after = b.assembly(text, ",".join(constraints), results, operands, has_side_effects=True)
    b.emit("llvm.store", [], [after, acc], {"alignment": b.integer(4)})


def _registers(b: Builder, a: Any, first: int, k: int, kind: str) -> list[Any]:
    """The four 32-bit registers of A that begin at element `first`."""
    bits = 256 // k
    words = []
    for i in range(4):
        offset = (first * bits) // 32 + i
        attributes = {
            "elem_type": b.ir.TypeAttr.get(b.i32),
            "rawConstantIndices": b.ir.DenseI32ArrayAttr.get([offset]),
        }
        address = b.emit("llvm.getelementptr", [a.type], [a], attributes)
        words.append(b.emit("llvm.load", [b.i32], [address], {"alignment": b.integer(4)}))
    return words


def _text(
    n: int,
    k: int,
    accumulator: str,
    kinds: list[str],
    majors: list[str],
    steps: list[list[int]],
    in_registers: bool,
    is_flagged: bool,
) -> str:
    """The block: operands are accumulators out, the same in, A, B, the flag."""
    count = n // 2
    registers = ", ".join(f"${i}" for i in range(count))
    at = 2 * count
    b_at = at + (4 * len(steps[0]) if in_registers else 1)
    types = ".".join(_PTX_TYPES[kind] for kind in kinds)
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{'f32' if accumulator == 'f32' else 's32'}"
    is_float, is_half = accumulator == "f32", k == 16
    lines = ["{", ".reg .pred first, other;", ".reg .b64 a, b;"]
    lines.append(f"setp.ne.b32 first, {f'${b_at + 1}' if is_flagged else '1'}, 0;")
    lines.append("setp.ne.b32 other, 1, 0;")
    for i, (a_step, b_step) in enumerate(zip(*steps, strict=True)):
        if in_registers:
            a_text = "{" + ", ".join(f"${at + 4 * i + j}" for j in range(4)) + "}"
        else:
            lines.append(f"add.s64 a, ${at}, {a_step};")
            a_text = "a"
        lines.append(f"add.s64 b, ${b_at}, {b_step};")
        modifiers = [f"{'first' if i == 0 else 'other'}"]
        if is_float:
            modifiers += ["1", "1"]
        if is_half:
            transposed = [str(int(major == "mn")) for major in majors]
            modifiers += transposed[1:] if in_registers else transposed
        lines.append(f"{name}.{types} {{{registers}}}, {a_text}, b, {', '.join(modifiers)};")
    lines.append("}")
    return "\n".join(lines)
