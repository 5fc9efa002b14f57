"""`cute.ptx_wgmma` as PTX: one block of inline PTX for each.

A block does all steps of K, so that the accumulator's registers are named once. They are read from
and written back to the thread's stack slot, which LLVM promotes: between two blocks nothing moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl_cute.dialect.warpgroup import WGMMA_TYPES, PtxWgmma, WgmmaType
from basedsl_cute.lowering.kernel.builder import Builder

_PTX_TYPES = {
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2",
    "i8": "s8", "ui8": "u8", "f32": "f32", "i32": "s32",
}  # fmt: skip


@dataclass(frozen=True)
class _Block:
    """The facts that the text of one block depends on."""

    n: int
    d: str
    kinds: tuple[str, str]
    majors: tuple[str, str]
    negated: tuple[bool, bool]
    steps: tuple[list[int], list[int]]
    a_in_registers: bool
    is_flagged: bool

    @property
    def what(self) -> WgmmaType:
        return WGMMA_TYPES[self.kinds[0]]

    @property
    def count(self) -> int:
        """Registers of the accumulator: one for a f32 or s32, one for two f16."""
        return self.n // (4 if self.d == "f16" else 2)

    def text(self) -> str:
        """Write the block. Its operands are the accumulators out, the same in, A, B, the flag."""
        registers = ", ".join(f"${i}" for i in range(self.count))
        at = 2 * self.count
        b_at = at + (4 * len(self.steps[0]) if self.a_in_registers else 1)
        types = ".".join(_PTX_TYPES[kind] for kind in (self.d, *self.kinds))
        name = f"wgmma.mma_async.sync.aligned.m64n{self.n}k{self.what.k}.{types}"
        # Registers of their own: ptxas takes a tenth longer for those that are written again.
        count = len(self.steps[1])
        lines = ["{", ".reg .pred first, other;", f".reg .b64 a<{count}>, b<{count}>;"]
        lines.append(f"setp.ne.b32 first, {f'${b_at + 1}' if self.is_flagged else '1'}, 0;")
        lines.append("setp.ne.b32 other, 1, 0;")
        for i, (a_step, b_step) in enumerate(zip(*self.steps, strict=True)):
            if self.a_in_registers:
                a_text = "{" + ", ".join(f"${at + 4 * i + j}" for j in range(4)) + "}"
            else:
                lines.append(f"add.s64 a{i}, ${at}, {a_step};")
                a_text = f"a{i}"
            lines.append(f"add.s64 b{i}, ${b_at}, {b_step};")
            last = ", ".join(["other" if i else "first", *self.modifiers])
            lines.append(f"{name} {{{registers}}}, {a_text}, b{i}, {last};")
        lines.append("}")
        return "\n".join(lines)

    @property
    def modifiers(self) -> list[str]:
        """imm-scale-a, imm-scale-b of floats; imm-trans-a, imm-trans-b of 16-bit operands, that of
        A only for one in shared memory.
        """
        found = []
        if not self.what.is_integer:
            found += ["-1" if negated else "1" for negated in self.negated]
        if self.what.has_mn_major:
            turned = [str(int(major == "mn")) for major in self.majors]
            found += turned[1:] if self.a_in_registers else turned
        return found


def to_ptx(b: Builder, op: PtxWgmma) -> None:
    """Emit `wgmma.mma_async` for each step, in one block of inline PTX."""
    ir = b.ir
    acc, a, flag = op.acc, op.a, op.accumulate
    block = _Block(
        n=op.n,
        d=op.d_type,
        kinds=(op.a_type, op.b_type),
        majors=(op.a_major, op.b_major),
        negated=(op.negate_a, op.negate_b),
        steps=(op.a_steps, op.b_steps),
        a_in_registers=str(a.type) != "i64",
        is_flagged=flag is not None,
    )
    count = block.count
    held, passed, letter = {
        "f32": (b.f32, b.f32, "f"),
        "i32": (b.i32, b.i32, "r"),
        "f16": (ir.VectorType.get([2], ir.F16Type.get()), b.i32, "r"),
    }[block.d]
    whole = ir.Type.parse(f"!llvm.struct<({', '.join([str(held)] * count)})>")
    before = b.emit("llvm.load", [whole], [acc], {"alignment": b.integer(4)})
    operands = [_as(b, b.extract_value(before, i, held), passed) for i in range(count)]
    constraints = [f"={letter}"] * count + [str(i) for i in range(count)]
    if block.a_in_registers:
        given = [_registers(b, a, step, block.what.k) for step in block.steps[0]]
        operands += [x for group in given for x in group]
        constraints += ["r"] * (4 * len(given))
    else:
        operands.append(a)
        constraints.append("l")
    operands.append(op.b)
    constraints.append("l")
    if flag is not None:
        operands.append(b.emit("arith.extui", [b.i32], [flag]))
        constraints.append("r")
    after = b.assembly(
        block.text(), ",".join(constraints), [passed] * count, operands, has_side_effects=True
    )
    if held == passed:
        b.emit("llvm.store", [], [after, acc], {"alignment": b.integer(4)})
        return
    for i in range(count):
        value = b.extract_value(after, i, passed)
        address = _element(b, acc, i)
        b.emit("llvm.store", [], [_as(b, value, held), address], {"alignment": b.integer(4)})


def _as(b: Builder, value: Any, kind: Any) -> Any:
    """Reinterpret 32 bits as another type."""
    return value if value.type == kind else b.emit("llvm.bitcast", [kind], [value])


def _registers(b: Builder, a: Any, first: int, k: int) -> list[Any]:
    """Load the four 32-bit registers of A that begin at element `first`."""
    start = first * (256 // k) // 32
    return [
        b.emit("llvm.load", [b.i32], [_element(b, a, start + i)], {"alignment": b.integer(4)})
        for i in range(4)
    ]


def _element(b: Builder, pointer: Any, i: int) -> Any:
    """Compute the address of word number `i`."""
    attributes = {
        "elem_type": b.ir.TypeAttr.get(b.i32),
        "rawConstantIndices": b.ir.DenseI32ArrayAttr.get([i]),
    }
    return b.emit("llvm.getelementptr", [pointer.type], [pointer], attributes)
