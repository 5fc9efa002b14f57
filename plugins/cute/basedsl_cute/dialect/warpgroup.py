"""The op of warpgroup matrix instructions (PTX ISA 9.7.15, "wgmma"), with an IR sample."""

from __future__ import annotations

from typing import Any

from basedsl_cute.dialect.declare import Operands, op

# Element types of A and B by name, with the extent of K in one instruction and the accumulators
# that they go with.
WGMMA_TYPES = {
    "f16": (16, ("f32",)),
    "bf16": (16, ("f32",)),
    "tf32": (8, ("f32",)),
    "f8E4M3FN": (32, ("f32",)),
    "f8E5M2": (32, ("f32",)),
    "i8": (32, ("i32",)),
    "ui8": (32, ("i32",)),
}
MAJORS = ("k", "mn")


@op("wgmma")
class Wgmma:
    """One matrix multiply-accumulate of a warpgroup per step: acc += a * b, on 64 rows.

        "cute.wgmma"(%acc, %a, %b, %p) {n = 128 : i64, a_type = "f16", b_type = "f16",
            a_major = "k", b_major = "k", a_steps = array<i64: 0, 2>, b_steps = array<i64: 0, 2>}
            : (!cute.memref<f32, "rmem", "(64):(1)">, i64, i64, i1) -> ()

    `%a` and `%b` are matrix descriptors (PTX ISA, "Matrix Descriptor Format"); in each step of K
    their steps are added, which count 16 bytes. `%a` may be a tensor in registers instead; its
    steps count elements then. Without `%accumulate`, or where it is true, the first step adds to
    what is in `%acc`, else it replaces it. Nothing is complete before the group was waited for.

    `lower-cute` leaves this op, on addresses of registers: the simulator runs it, `ptx-only` makes
    instructions of it.
    """

    operands = ("acc", "a", "b", "?accumulate")
    attributes = ("n", "a_type", "b_type", "a_major", "b_major", "a_steps", "b_steps")

    @staticmethod
    def verify(op: Operands) -> str | None:
        n = op.integer("n") or 0
        if n % 8 or not 8 <= n <= 256:
            return f"n is {n}; it must be a multiple of 8 from 8 to 256"
        for which in ("a", "b"):
            kind, major = op.text(f"{which}_type"), op.text(f"{which}_major")
            if kind not in WGMMA_TYPES:
                return f"{which} of {kind}: there are {', '.join(WGMMA_TYPES)}"
            if major not in MAJORS:
                return f"the major mode of {which} is {major!r}, not 'k' or 'mn'"
            if major == "mn" and WGMMA_TYPES[kind][0] != 16:
                return f"{which} of {kind} must have K contiguous"
        if len(list(op.a_steps)) != len(list(op.b_steps)):
            return "a and b have different numbers of steps"
        wrong = _registers(op, op.acc, "acc")
        if wrong is None and str(op.a.type) != "i64":
            wrong = _registers(op, op.a, "a")
        if wrong is None and str(op.b.type) != "i64":
            wrong = f"b is {op.b.type}, not a descriptor (i64)"
        return wrong


def _registers(op: Operands, value: Any, what: str) -> str | None:
    if str(value.type) == "!llvm.ptr":
        return None
    record = op.dialect.record(value.type)
    if record is None or record.space != "rmem":
        return f"{what} is {value.type}, not a tensor in registers"
    return None
