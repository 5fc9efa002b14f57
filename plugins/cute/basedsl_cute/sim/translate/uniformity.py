"""Uniformity analysis: values that all lanes of a group share, and branches that diverge.

Uniform values are held once, and uniform branches become plain Python branches. The analysis starts
from "every value is uniform" and removes those that are not, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from basedsl_cute.sim.translate.records import Global, KernelRecord, Op, Value
from basedsl_cute.sim.translate.register_uses import DERIVING, register_uses
from basedsl_cute.sim.translate.types import PtrType


class LockstepRule(Protocol):
    """The part of a rule that the analysis asks."""

    def is_uniform(self, uniformity: UniformityAnalysis, op: Op) -> bool: ...
    def is_volatile(self, op: Op) -> bool: ...
    def sync_of(self, op: Op) -> str: ...


class LockstepRules(Protocol):
    """The part of the rule table that the analysis asks."""

    def for_op(self, op: Op, target: str) -> LockstepRule: ...


@dataclass(frozen=True, slots=True)
class Root:
    """The object that a pointer was derived from: a kernel argument (by number), a global variable,
    or the result of an alloca.
    """

    arg: int | None = None
    variable: Global | None = None
    local: Value | None = None

    @property
    def space(self) -> int:
        """The address space of the object, as LLVM numbers them."""
        if self.local is not None:
            return 5
        return self.variable.space or 4 if self.variable else 1


class UniformityAnalysis:
    """The `varying` values and `diverging` ops of one kernel, for groups within one block or, with
    `many_blocks`, across blocks. Raises MissingRuleError for an op that `rules` do not have.
    """

    def __init__(self, kernel: KernelRecord, many_blocks: bool, rules: LockstepRules) -> None:
        self.kernel = kernel
        self.rules = rules
        self.many_blocks = many_blocks
        registers = register_uses(kernel)
        ops = kernel.walk()
        self.has_local = any(
            op.name == "llvm.alloca" and op.results[0] not in registers for op in ops
        )
        self.has_shared = any(variable.space == 3 for variable in kernel.globals.values())
        self.used = {value for op in ops for value in op.operands}
        self.args = {value: i for i, value in enumerate(kernel.body.args)}
        self.varying: set[Value] = set()
        self.diverging: set[Op] = set()
        flows = [
            (op, _FLOWS.get(op.name), rules.for_op(op, "sim"))
            for op in ops
            if op.name in _FLOWS or op.results
        ]
        size = -1
        while size != len(self.varying) + len(self.diverging):
            size = len(self.varying) + len(self.diverging)
            for op, flow, rule in flows:
                if flow is not None:
                    flow(self, op)
                elif not rule.is_uniform(self, op):
                    self.varying.update(op.results)

    def root(self, pointer: Value) -> Root | None:
        """The object that `pointer` points into; None if its derivation does not show that."""
        value = pointer
        while value.defining is not None and value.defining.name in DERIVING:
            value = value.defining.operands[0]
        if value.defining is None:
            is_global = isinstance(value.type, PtrType) and value.type.space in (0, 1)
            return Root(arg=self.args[value]) if is_global and value in self.args else None
        if value.defining.name == "llvm.alloca":
            return Root(local=value)
        if value.defining.name == "llvm.mlir.addressof":
            name = value.defining.attributes["global_name"].lstrip("@").strip('"')
            return Root(variable=self.kernel.globals[name])
        return None

    def same_memory(self, pointer: Value) -> bool:
        """True when equal addresses mean the same memory for all lanes of a group."""
        root = self.root(pointer)
        space = pointer.type.space if isinstance(pointer.type, PtrType) else 0
        if root is not None and space == 0:
            space = root.space
        if space == 0:
            return not (self.has_local or (self.many_blocks and self.has_shared))
        return space in (1, 4) or (space == 3 and not self.many_blocks)

    def mark(self, values: list[Value]) -> None:
        """Note that `values` vary."""
        self.varying.update(values)

    def flows(self, sources: list[Value], target: list[Value]) -> None:
        """Note that each target varies if its source does."""
        for source, to in zip(sources, target, strict=True):
            if source in self.varying:
                self.varying.add(to)


def _flow_if(v: UniformityAnalysis, op: Op) -> None:
    if op.operands[0] in v.varying:
        v.diverging.add(op)
        v.mark(op.results)
    for region in op.regions:
        if region.ops:
            v.flows(region.terminator.operands, op.results)


def _flow_for(v: UniformityAnalysis, op: Op) -> None:
    bounds, initial = op.operands[:3], op.operands[3:]
    (body,) = op.regions
    if any(bound in v.varying for bound in bounds):
        v.diverging.add(op)
        v.mark(body.args)
        v.mark(op.results)
    v.flows(initial, body.args[1:])
    v.flows(body.terminator.operands, body.args[1:])
    v.flows(body.args[1:], op.results)


def _flow_while(v: UniformityAnalysis, op: Op) -> None:
    before, after = op.regions
    condition, *passed = before.terminator.operands
    if condition in v.varying:
        v.diverging.add(op)
        v.mark([*before.args, *after.args, *op.results])
    v.flows(op.operands, before.args)
    v.flows(passed, after.args)
    v.flows(passed, op.results)
    v.flows(after.terminator.operands, before.args)


_FLOWS: dict[str, Callable[[UniformityAnalysis, Op], None]] = {
    "scf.if": _flow_if,
    "scf.index_switch": _flow_if,
    "scf.for": _flow_for,
    "scf.while": _flow_while,
}


def _ops_in_context(
    uniformity: UniformityAnalysis, ops: list[Op], diverged: bool, looping: bool
) -> Iterator[tuple[Op, bool, bool]]:
    for op in ops:
        yield op, diverged, looping
        inside = diverged or op in uniformity.diverging
        for region in op.regions:
            yield from _ops_in_context(
                uniformity, region.ops, inside, looping or op.name == "scf.while"
            )


def lockstep_is_safe(uniformity: UniformityAnalysis) -> bool:
    """True when running all warps of a group in lock step gives what running them apart gives.

    It does not when some warps wait while others go on, or when a loop may wait for another warp.
    """
    for op, diverged, looping in _ops_in_context(
        uniformity, uniformity.kernel.body.ops, False, False
    ):
        rule = uniformity.rules.for_op(op, "sim")
        sync = rule.sync_of(op)
        spins = looping and rule.is_volatile(op) and not uniformity.used.isdisjoint(op.results)
        if sync == "warp" or (sync == "block" and diverged) or spins:
            return False
    return True
