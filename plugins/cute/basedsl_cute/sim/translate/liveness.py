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


def _used(op: Op) -> list[Value]:
    """The operands of an operation, and what the report of a failed assertion shows besides."""
    if op.name == "cf.assert" and op.operands[0].defining is not None:
        return [*op.operands, *op.operands[0].defining.operands]
    return op.operands
