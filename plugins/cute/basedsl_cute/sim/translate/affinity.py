"""Analysis of the values that are held as coefficients of the lanes' coordinates (`sim.affine`)."""

from __future__ import annotations

from basedsl_cute.sim.translate.records import KernelRecord, Op, Value
from basedsl_cute.sim.translate.types import IntType, PtrType

_SOURCES = frozenset(
    f"nvvm.read.ptx.sreg.{name}"
    for name in (*(f"{which}.{axis}" for which in ("tid", "ctaid") for axis in "xyz"), "laneid")
)
_KEEPING = frozenset(
    (
        "arith.addi", "arith.subi", "arith.muli", "arith.extsi", "arith.extui", "arith.index_cast",
        "arith.andi", "arith.shli", "arith.shrsi", "arith.shrui", "arith.divsi", "arith.remsi",
        "arith.floordivsi", "arith.divui", "arith.remui", "llvm.add", "llvm.sub", "llvm.mul",
        "llvm.sext", "llvm.zext", "llvm.and", "llvm.shl", "llvm.ashr", "llvm.lshr", "llvm.sdiv",
        "llvm.srem", "llvm.udiv", "llvm.urem", "llvm.getelementptr",
    )
)  # fmt: skip


def affine_values(kernel: KernelRecord, varying: set[Value]) -> set[Value]:
    """The varying values that may be held so: indices of threads and blocks, and sums, differences,
    products and quotients of such.
    """
    found: set[Value] = set()
    for op in kernel.walk():
        if len(op.results) == 1 and op.results[0] in varying and _is_affine(op, found):
            found.add(op.results[0])
    return found


def _is_affine(op: Op, found: set[Value]) -> bool:
    if op.name in _SOURCES:
        return str(op.results[0].type) == "i32"
    if op.name not in _KEEPING or found.isdisjoint(op.operands):
        return False
    return all(_fits(value) for value in (*op.operands, *op.results))


def _fits(value: Value) -> bool:
    type_ = value.type
    return isinstance(type_, PtrType) or (isinstance(type_, IntType) and type_.width in (32, 64))
