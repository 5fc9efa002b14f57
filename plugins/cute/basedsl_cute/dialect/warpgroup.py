"""The operation of warpgroup matrix instructions (PTX ISA 9.7.15, "wgmma"), in two forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from basedsl import i64_array_attr, i64_attr, operand, str_attr, unit_attr
from basedsl_cute.dialect.cute_op import CuteOp, Value


@dataclass(frozen=True)
class WgmmaType:
    """The shapes and types of wgmma for one element type of A (PTX ISA 9.7.15.5.14,
    "wgmma.mma_async").

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
    """Return why there is no wgmma with N = `n`, or None if there is."""
    if n % 8 or not 8 <= n <= 256:
        return "N is a multiple of 8 from 8 to 256"
    if is_integer and n % 16 and n not in (8, 24):
        return "N of integers is 8, 24 or a multiple of 16 up to 256"
    return None


class WarpgroupMma(CuteOp, ABC):
    """The fields of both forms of wgmma: acc += a * b, in one instruction for each step of K."""

    acc: Value = operand()
    a: Value = operand()
    b: Value = operand()
    accumulate: Value | None = operand(default=None)
    n: int = i64_attr()
    d_type: str = str_attr()
    a_type: str = str_attr()
    b_type: str = str_attr()
    a_major: str = str_attr()
    b_major: str = str_attr()
    a_steps: list[int] = i64_array_attr()
    b_steps: list[int] = i64_array_attr()
    negate_a: bool = unit_attr(default=False)
    negate_b: bool = unit_attr(default=False)

    def verify(self) -> str | None:
        for which, kind, major in (
            ("a", self.a_type, self.a_major),
            ("b", self.b_type, self.b_major),
        ):
            if kind not in WGMMA_TYPES:
                return f"{which} of {kind}: there are {', '.join(WGMMA_TYPES)}"
            if major not in MAJORS:
                return f"the major mode of {which} is {major!r}, not 'k' or 'mn'"
            if major == "mn" and not WGMMA_TYPES[kind].has_mn_major:
                return f"{which} of {kind} must have K contiguous"
        what = WGMMA_TYPES[self.a_type]
        if self.b_type not in what.partners:
            return f"a of {self.a_type} goes with b of {' or '.join(what.partners)}"
        if self.d_type not in what.accumulators:
            return f"a of {self.a_type} goes with d of {' or '.join(what.accumulators)}"
        refused = refused_width(self.n, what.is_integer)
        if refused is not None:
            return f"n is {self.n}: {refused}"
        if what.is_integer and (self.negate_a or self.negate_b):
            return "integers are not negated"
        if len(self.a_steps) != len(self.b_steps):
            return "a and b have different numbers of steps"
        wrong = self._registers("acc", self.acc)
        if wrong is None and str(self.a.type) != "i64":
            wrong = self._registers("a", self.a)
        if wrong is None and str(self.b.type) != "i64":
            wrong = f"b is {self.b.type}, not a descriptor (i64)"
        if wrong is None and self.accumulate is not None and str(self.accumulate.type) != "i1":
            wrong = f"accumulate is {self.accumulate.type}, not i1"
        return wrong

    @abstractmethod
    def _registers(self, what: str, value: Value) -> str | None:
        """Return why `value` does not name registers in this form, or None if it does."""


class Wgmma(WarpgroupMma, name="wgmma"):
    """Multiply and accumulate matrices by a warpgroup, once for each step: acc += a * b, on 64
    rows.

        "cute.wgmma"(%acc, %a, %b, %p) {n = 128 : i64, d_type = "f32", a_type = "f16",
            b_type = "f16", a_major = "k", b_major = "k", a_steps = array<i64: 0, 2>,
            b_steps = array<i64: 0, 2>}
            : (!cute.memref<f32, "rmem", "(64):(1)">, i64, i64, i1) -> ()

    `%a` and `%b` are matrix descriptors (PTX ISA, "Matrix Descriptor Format"); in each step of K
    their steps are added, which count 16 bytes. `%a` may be a tensor in registers instead; its
    steps count elements then. Without `%accumulate`, or where it is true, the first step adds to
    what is in `%acc`, else it replaces it. Nothing is complete before the group was waited for.
    """

    def _registers(self, what: str, value: Value) -> str | None:
        record = self.dialect.record(value.type)
        if record is None or record.space != "rmem":
            return f"{what} is {value.type}, not a tensor in registers"
        return None


class PtxWgmma(WarpgroupMma, name="ptx_wgmma"):
    """Do a `cute.wgmma` on registers given by their addresses: its form after the step
    `lower-cute`. The simulator runs it, `ptx-only` makes instructions of it.

        "cute.ptx_wgmma"(%acc, %a, %b, %p) {n = 128 : i64, d_type = "f32", a_type = "f16",
            b_type = "f16", a_major = "k", b_major = "k", a_steps = array<i64: 0, 2>,
            b_steps = array<i64: 0, 2>}
            : (!llvm.ptr, i64, i64, i1) -> ()
    """

    def _registers(self, what: str, value: Value) -> str | None:
        kind = str(value.type)
        return None if kind == "!llvm.ptr" else f"{what} is {kind}, not an address (!llvm.ptr)"
