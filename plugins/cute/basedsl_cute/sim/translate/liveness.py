"""Liveness of values in generated code: which are used for the last time by an operation."""

from __future__ import annotations

from basedsl_cute.sim.translate.records import Op, OpRegion, Value


def last_uses(region: OpRegion) -> dict[Op, list[Value]]:
    """The values of a region that no operation needs after each one of it. Those that its
    terminator takes are needed by the operation around it.
    """
    last: dict[Value, Op] = {}
    for op in region.ops:
        for inner in op.walk():
            for value in _used(inner):
                last[value] = op
    found: dict[Op, list[Value]] = {}
    for op in region.ops:
        for value in op.results:
            end = last.get(value, op)
            if end is not region.terminator:
                found.setdefault(end, []).append(value)
    return found


def steady_loads(region: OpRegion) -> set[Op]:
    """The loads of a region whose values live until a store at most, and are never part of another
    value: they need no copy of memory that only the lanes of this group can change meanwhile.
    """
    if not any(op.name == "llvm.load" for op in region.ops):
        return set()
    open_: dict[Value, Op] = {}  # values of loads since the last store
    left: dict[Value, int] = {}  # uses of them that are still to come
    users: dict[Value, int] = {}
    for op in region.ops:
        for inner in op.walk():
            for value in inner.operands:
                users[value] = users.get(value, 0) + 1
    found: set[Op] = set()
    for op in region.ops:
        for value in op.operands:
            if value not in open_:
                continue
            left[value] -= 1
            if not op.name.startswith(_COPYING) or op.name in _NOT_COPYING:
                del open_[value]
            elif not left[value]:
                found.add(open_.pop(value))
        if op.regions or op.name == "llvm.store" or not op.name.startswith(_HARMLESS):
            open_.clear()
        if op.name == "llvm.load":
            (result,) = op.results
            open_[result], left[result] = op, users.get(result, 0)
    return found


# Operations whose results share no memory with their operands.
_COPYING = ("arith.", "math.", "nvvm.mma.sync", "nvvm.shfl.sync", "llvm.store")
_NOT_COPYING = frozenset(
    (
        "arith.bitcast", "arith.select", "arith.index_cast", "arith.index_castui", "arith.trunci",
        "arith.shrsi", "arith.divsi", "arith.divui", "arith.floordivsi", "arith.ceildivsi",
        "arith.ceildivui",
    )
)  # fmt: skip
# Operations that write no memory and let no other lanes do so.
_HARMLESS = (
    "arith.", "math.", "cf.assert", "llvm.getelementptr", "llvm.load", "llvm.mlir.", "llvm.bitcast",
    "llvm.extractvalue", "vector.extract", "vector.insert", "vector.bitcast", "vector.shape_cast",
    "vector.from_elements", "vector.broadcast", "nvvm.mma.sync", "nvvm.shfl.sync",
)  # fmt: skip


def _used(op: Op) -> list[Value]:
    """The operands of an operation, and what the report of a failed assertion shows besides."""
    if op.name == "cf.assert" and op.operands[0].defining is not None:
        return [*op.operands, *op.operands[0].defining.operands]
    return op.operands
