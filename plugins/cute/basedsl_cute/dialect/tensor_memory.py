"""The operations that move tensor memory to and from registers (PTX ISA, "tcgen05.ld" and
"tcgen05.st").

The step `lower-cute` keeps them: the simulator runs them, `ptx-only` makes instructions of them.
The other instructions of tcgen05 are operations of the nvvm dialect.
"""

from __future__ import annotations

from basedsl import i64_array_attr, i64_attr, operand, result, str_attr, unit_attr
from basedsl_cute.algebra import TMEM_SHAPES
from basedsl_cute.dialect.cute_op import CuteOp, Value

ADDRESS = "!llvm.ptr<6>"
# Registers of one repetition of each shape.
WORDS = {"32x32b": 1, "16x256b": 4, "16x128b": 2, "16x64b": 1, "16x32bx2": 1}


# Reductions of a load, over the registers of a thread, and the shapes that have them.
REDUCTIONS = ("max", "min", "max.abs", "min.abs")
REDUCING = ("32x32b", "16x32bx2")


def _refused(
    shape: str, repeat: int, steps: list[int], address: Value, values: Value, more: int = 0
) -> str | None:
    """Return why the fields do not describe instructions; None if they do."""
    most = TMEM_SHAPES.get(shape)
    if most is None:
        return f"the shape {shape!r} is none of {', '.join(TMEM_SHAPES)}"
    if repeat < 1 or repeat > most or repeat & (repeat - 1):
        return f"{shape} is repeated a power of two times up to {most}, not {repeat}"
    if str(address.type) != ADDRESS:
        return f"the address is {address.type}, not {ADDRESS}"
    wanted = f"vector<{len(steps) * (WORDS[shape] * repeat + more)}xi32>"
    if str(values.type) != wanted:
        return f"the registers are {values.type}, not {wanted}"
    return None


class TmemLoad(CuteOp, name="tmem_load"):
    """Load registers from tensor memory by a warp, in one instruction for each step, and wait.

        %v = "cute.tmem_load"(%address) {shape = "32x32b", repeat = 8 : i64,
            steps = array<i64: 0, 8>} : (!llvm.ptr<6>) -> vector<16xi32>

    An instruction reads at the address plus its step (`lane << 16 | column`). With `packed` each
    column holds 16 bits, and a register two of them. All threads of the warp give one address.

    With a `reduction` of registers of type `kind` ("f32", "s32" or "u32"), one more register for
    each instruction, behind all others, has that of the thread's registers (shapes 32x32b and
    16x32bx2).
    """

    address: Value = operand()
    values: Value = result(alias="type")
    shape: str = str_attr()
    repeat: int = i64_attr()
    steps: list[int] = i64_array_attr()
    packed: bool = unit_attr(default=False)
    reduction: str | None = str_attr(default=None)
    kind: str | None = str_attr(default=None)

    def verify(self) -> str | None:
        if self.reduction is not None and self.reduction not in REDUCTIONS:
            return f"{self.reduction!r} is none of {', '.join(REDUCTIONS)}"
        reduces = self.shape in REDUCING and self.repeat >= 2 and not self.packed
        if self.reduction and not reduces:
            shapes = " and ".join(REDUCING)
            return f"only {shapes}, from 2 repetitions on and not packed, have a reduction"
        more = 1 if self.reduction else 0
        return _refused(self.shape, self.repeat, self.steps, self.address, self.values, more)


class TmemStore(CuteOp, name="tmem_store"):
    """Store registers to tensor memory by a warp, in one instruction for each step.

        "cute.tmem_store"(%address, %v) {shape = "32x32b", repeat = 8 : i64,
            steps = array<i64: 0, 8>} : (!llvm.ptr<6>, vector<16xi32>) -> ()

    Fields are those of `cute.tmem_load`. Nothing is complete before `tcgen05.wait::st`.
    """

    address: Value = operand()
    values: Value = operand()
    shape: str = str_attr()
    repeat: int = i64_attr()
    steps: list[int] = i64_array_attr()
    packed: bool = unit_attr(default=False)

    def verify(self) -> str | None:
        return _refused(self.shape, self.repeat, self.steps, self.address, self.values)
