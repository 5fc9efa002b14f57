"""`cute.tmem_load` and `cute.tmem_store` as PTX: one block of inline PTX for each.

A block of loads ends with the wait for them, so that nothing can read their registers before.
"""

from __future__ import annotations

from basedsl_cute.dialect.tensor_memory import WORDS, TmemLoad, TmemStore
from basedsl_cute.lowering.kernel.builder import Builder


def load_to_ptx(b: Builder, op: TmemLoad) -> None:
    """Emit `tcgen05.ld` for each step and `tcgen05.wait::ld`; the registers replace the op."""
    count = len(op.steps) * (WORDS[op.shape] * op.repeat + (1 if op.reduction else 0))
    text = "\n".join(["{", *_instructions(op, 0, count), "tcgen05.wait::ld.sync.aligned;", "}"])
    constraints = ",".join([*["=r"] * count, "r", "~{memory}"])
    found = b.assembly(text, constraints, [b.i32] * count, [op.address], has_side_effects=True)
    words = [found] if count == 1 else [b.extract_value(found, i, b.i32) for i in range(count)]
    kind = op.values.type
    vector = b.emit("llvm.mlir.undef", [kind])
    for i, word in enumerate(words):
        vector = b.emit("llvm.insertelement", [kind], [vector, word, b.constant(i)])
    op.values.replace_all_uses_with(vector)


def store_to_ptx(b: Builder, op: TmemStore) -> None:
    """Emit `tcgen05.st` for each step."""
    count = len(op.steps) * WORDS[op.shape] * op.repeat
    words = [
        b.emit("llvm.extractelement", [b.i32], [op.values, b.constant(i)]) for i in range(count)
    ]
    text = "\n".join(["{", *_instructions(op, 0, count), "}"])
    constraints = ",".join([*["r"] * count, "r", "~{memory}"])
    b.assembly(text, constraints, [], [*words, op.address], has_side_effects=True)


def _instructions(op: TmemLoad | TmemStore, first: int, address: int) -> list[str]:
    """Write the instructions, on the registers from operand `first` and the address operand."""
    each = WORDS[op.shape] * op.repeat
    is_load = isinstance(op, TmemLoad)
    name = f"tcgen05.{'ld' if is_load else 'st'}.sync.aligned.{op.shape}.x{op.repeat}"
    if op.packed:
        name += ".pack::16b" if is_load else ".unpack::16b"
    half = f", {op.repeat * (2 if op.packed else 1)}" if op.shape == "16x32bx2" else ""
    lines = [".reg .b32 at;"]
    for i, step in enumerate(op.steps):
        registers = ", ".join(f"${first + i * each + j}" for j in range(each))
        lines.append(f"add.s32 at, ${address}, {step};")
        if isinstance(op, TmemLoad) and op.reduction:
            reduced = first + len(op.steps) * each + i
            lines.append(
                f"{name.replace('.ld.', '.ld.red.')}.{op.reduction}.{op.kind} {{{registers}}}, "
                f"${reduced}, [at]{half};"
            )
        elif is_load:
            lines.append(f"{name}.b32 {{{registers}}}, [at]{half};")
        else:
            lines.append(f"{name}.b32 [at]{half}, {{{registers}}};")
    return lines
