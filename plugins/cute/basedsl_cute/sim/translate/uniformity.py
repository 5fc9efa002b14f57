"""Which values all lanes of a group share, which branches diverge, how wide groups may be.

Uniform values are kept once, and uniform branches become plain Python branches. The analysis
starts from "everything is uniform" and removes what is not until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from basedsl_cute.sim.translate.records import Global, KernelRecord, Op, Region, Value
from basedsl_cute.sim.translate.register_uses import DERIVING, register_uses
from basedsl_cute.sim.translate.rule_table import rule_of
from basedsl_cute.sim.translate.types import PtrType


@dataclass(frozen=True, slots=True)
class Root:
    """What a pointer was derived from: a kernel argument, a global variable, or an alloca."""

    arg: int | None = None
    variable: Global | None = None
    local: Value | None = None

    @property
    def space(self) -> int:
        if self.local is not None:
            return 5
        return self.variable.space or 4 if self.variable else 1


class Variance:
    """The varying values and diverging ops of one kernel, for groups within or across blocks."""

    def __init__(self, kernel: KernelRecord, many_blocks: bool) -> None:
        self.kernel = kernel
        self.many_blocks = many_blocks
        registers = register_uses(kernel)
        self.has_local = any(
            op.name == "llvm.alloca" and op.results[0] not in registers for op in kernel.walk()
        )
        self.has_shared = any(variable.space == 3 for variable in kernel.globals.values())
        self.used = {value for op in kernel.walk() for value in op.operands}
        self.args = {value: i for i, value in enumerate(kernel.body.args)}
        self.varying: set[Value] = set()
        self.diverging: set[Op] = set()
        size = -1
        while size != len(self.varying) + len(self.diverging):
            size = len(self.varying) + len(self.diverging)
            self._region(kernel.body)

    def root(self, pointer: Value) -> Root | None:
        """The argument or global variable that `pointer` points into, if that is plain to see."""
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
        self.varying.update(values)

    def flows(self, sources: list[Value], target: list[Value]) -> None:
        for source, to in zip(sources, target, strict=True):
            if source in self.varying:
                self.varying.add(to)

    def _region(self, region: Region) -> None:
        for op in region.ops:
            flow = _FLOWS.get(op.name)
            if flow is not None:
                flow(self, op)
            elif op.results and not rule_of(op).uniform(self, op):
                self.mark(op.results)
            for inner in op.regions:
                self._region(inner)


def _flow_if(v: Variance, op: Op) -> None:
    if op.operands[0] in v.varying:
        v.diverging.add(op)
        v.mark(op.results)
    for region in op.regions:
        if region.ops:
            v.flows(region.terminator.operands, op.results)


def _flow_for(v: Variance, op: Op) -> None:
    bounds, initial = op.operands[:3], op.operands[3:]
    (body,) = op.regions
    if any(bound in v.varying for bound in bounds):
        v.diverging.add(op)
        v.mark(body.args)
        v.mark(op.results)
    v.flows(initial, body.args[1:])
    v.flows(body.terminator.operands, body.args[1:])
    v.flows(body.args[1:], op.results)


def _flow_while(v: Variance, op: Op) -> None:
    before, after = op.regions
    condition, *passed = before.terminator.operands
    if condition in v.varying:
        v.diverging.add(op)
        v.mark([*before.args, *after.args, *op.results])
    v.flows(op.operands, before.args)
    v.flows(passed, after.args)
    v.flows(passed, op.results)
    v.flows(after.terminator.operands, before.args)


_FLOWS: dict[str, Callable[[Variance, Op], None]] = {
    "scf.if": _flow_if,
    "scf.index_switch": _flow_if,
    "scf.for": _flow_for,
    "scf.while": _flow_while,
}


def _with_context(
    variance: Variance, ops: list[Op], diverged: bool, looping: bool
) -> Iterator[tuple[Op, bool, bool]]:
    for op in ops:
        yield op, diverged, looping
        inside = diverged or op in variance.diverging
        for region in op.regions:
            yield from _with_context(
                variance, region.ops, inside, looping or op.name == "scf.while"
            )


def lockstep_is_safe(variance: Variance) -> bool:
    """True when running all warps of a group in lock step gives what running them apart gives.

    Not so when some warps wait while others go on, or when a loop may wait for another warp.
    """
    for op, diverged, looping in _with_context(variance, variance.kernel.body.ops, False, False):
        found = rule_of(op)
        sync = found.sync_of(op)
        spins = looping and found.is_volatile(op) and not variance.used.isdisjoint(op.results)
        if sync == "warp" or (sync == "block" and diverged) or spins:
            return False
    return True
