"""The op of warpgroup matrix instructions (PTX ISA 9.7.15, "wgmma"), with an IR sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl_cute.dialect.declare import Operands, op


@dataclass(frozen=True)
class WgmmaType:
    """What wgmma does with elements of A of one type (PTX ISA 9.7.15.5.14, "wgmma.mma_async").

    `k` is the extent of K in one instruction, 32 bytes of a row; `accumulators` are the types of D,
    `partners` those of B. Only 16-bit operands may be contiguous in M or N.
    """

    k: int
    accumulators: tuple[str, ...]
    partners: tuple[str, ...]

    @property
    def has_mn_major(self) -> bool:
        return self.k == 16

    @property
    def is_integer(self) -> bool:
        return self.accumulators == ("i32",)


_F8 = ("f8E4M3FN", "f8E5M2")
_I8 = ("i8", "ui8")

# By the name of A's elements.
WGMMA_TYPES = {
    "f16": WgmmaType(16, ("f32", "f16"), ("f16",)),
    "bf16": WgmmaType(16, ("f32",), ("bf16",)),
    "tf32": WgmmaType(8, ("f32",), ("tf32",)),
    **{name: WgmmaType(32, ("f32", "f16"), _F8) for name in _F8},
    **{name: WgmmaType(32, ("i32",), _I8) for name in _I8},
}
MAJORS = ("k", "mn")


def refused_width(n: int, is_integer: bool) -> str | None:
    """Why there is no wgmma with N = `n`, or None."""
    if n % 8 or not 8 <= n <= 256:
        return "N is a multiple of 8 from 8 to 256"
    if is_integer and n % 16 and n not in (8, 24):
        return "N of integers is 8, 24 or a multiple of 16 up to 256"
    return None


@op("wgmma")
class Wgmma:
    """One matrix multiply-accumulate of a warpgroup per step: acc += a * b, on 64 rows.

        "cute.wgmma"(%acc, %a, %b, %p) {n = 128 : i64, d_type = "f32", a_type = "f16",
            b_type = "f16", a_major = "k", b_major = "k", a_steps = array<i64: 0, 2>,
            b_steps = array<i64: 0, 2>}
            : (!cute.memref<f32, "rmem", "(64):(1)">, i64, i64, i1) -> ()

    `%a` and `%b` are matrix descriptors (PTX ISA, "Matrix Descriptor Format"); in each step of K
    their steps are added, which count 16 bytes. `%a` may be a tensor in registers instead; its
    steps count elements then. Without `%accumulate`, or where it is true, the first step adds to
    what is in `%acc`, else it replaces it. Nothing is complete before the group was waited for.

    `lower-cute` leaves this op, on addresses of registers: the simulator runs it, `ptx-only` makes
    instructions of it.
    """

    operands = ("acc", "a", "b", "?accumulate")
    attributes = ("n", "d_type", "a_type", "b_type", "a_major", "b_major", "a_steps", "b_steps")
    optional = ("negate_a", "negate_b")

    @staticmethod
    def verify(op: Operands) -> str | None:
        for which in ("a", "b"):
            kind, major = op.text(f"{which}_type"), op.text(f"{which}_major")
            if kind not in WGMMA_TYPES:
                return f"{which} of {kind}: there are {', '.join(WGMMA_TYPES)}"
            if major not in MAJORS:
                return f"the major mode of {which} is {major!r}, not 'k' or 'mn'"
            if major == "mn" and not WGMMA_TYPES[kind].has_mn_major:
                return f"{which} of {kind} must have K contiguous"
        what = WGMMA_TYPES[op.text("a_type") or ""]
        if op.text("b_type") not in what.partners:
            return f"a of {op.text('a_type')} goes with b of {' or '.join(what.partners)}"
        if op.text("d_type") not in what.accumulators:
            return f"a of {op.text('a_type')} goes with d of {' or '.join(what.accumulators)}"
        n = op.integer("n") or 0
        refused = refused_width(n, what.is_integer)
        if refused is not None:
            return f"n is {n}: {refused}"
        if what.is_integer and (op.negate_a is not None or op.negate_b is not None):
            return "integers are not negated"
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
