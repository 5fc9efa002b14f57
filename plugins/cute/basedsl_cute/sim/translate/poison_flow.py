"""Poison in generated code: which values may come from what nobody wrote, and the lines that follow
them.

The value N that may be poisoned has its poison in the variable `pN`: None while all is well. An
elementwise result has that of its operands, so nothing is written for it: its poison is the list
of their variables. Only moves, merges and uses cost a line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from basedsl_cute.sim.machine import matrix, poison
from basedsl_cute.sim.translate.records import KernelRecord, Op, OpRegion, Value
from basedsl_cute.sim.translate.types import (
    PtrType,
    Type,
    VectorType,
    aggregate_fields,
    is_aggregate,
)

if TYPE_CHECKING:
    from basedsl_cute.sim.translate.emitter import EmitRule, PythonEmitter

_UNDEFINED = frozenset(("ub.poison", "llvm.mlir.poison", "llvm.mlir.undef"))
_LOADS = frozenset(("llvm.load", "nvvm.ldmatrix"))
_CONTROL = frozenset(("scf.if", "scf.for", "scf.while", "scf.index_switch"))
_SELECTS = frozenset(("arith.select", "llvm.select"))
_MOST = 6  # variables that an elementwise result refers to before it gets one of its own

# Operations that move elements, with the number of operands that are data; 0: all of them.
_MOVES = {
    "llvm.extractvalue": 1,
    "llvm.insertvalue": 2,
    "llvm.extractelement": 1,
    "llvm.insertelement": 2,
    "llvm.shufflevector": 0,
    "vector.extract": 1,
    "vector.insert": 2,
    "vector.extractelement": 1,
    "vector.insertelement": 2,
    "vector.broadcast": 0,
    "vector.splat": 0,
    "vector.from_elements": 0,
    "vector.to_elements": 0,
    "vector.shape_cast": 0,
    "vector.shuffle": 0,
    "vector.extract_strided_slice": 0,
    "vector.insert_strided_slice": 0,
    "vector.transpose": 0,
    "vector.interleave": 0,
    "vector.deinterleave": 0,
}
_BITCASTS = frozenset(("llvm.bitcast", "vector.bitcast"))
_FOLDS = ("vector.reduction", "vector.multi_reduction", "llvm.intr.vector.reduce.")
_DIVISIONS = frozenset(
    (
        "arith.divsi", "arith.floordivsi", "arith.ceildivsi", "arith.remsi", "arith.divui",
        "arith.ceildivui", "arith.remui", "llvm.sdiv", "llvm.srem", "llvm.udiv", "llvm.urem",
    )
)  # fmt: skip
# What makes a divisor that is safe out of one that may be zero.
_SAFE = frozenset(("arith.maxui", "arith.select", "llvm.intr.umax", "llvm.select"))
# These take values and decide nothing by them.
_IGNORED = frozenset(
    (
        "gpu.printf", "llvm.call", "llvm.intr.assume", "llvm.intr.lifetime.start",
        "llvm.intr.lifetime.end", "llvm.intr.prefetch", "llvm.intr.dbg.value",
        "scf.yield", "scf.condition", "gpu.return", "llvm.store",
    )
)  # fmt: skip
_ELEMENTWISE = (
    "arith.", "math.", "llvm.", "vector.", "nvvm.addf", "nvvm.subf", "nvvm.fma", "nvvm.ex2",
    "nvvm.log2", "nvvm.sin", "nvvm.cos", "nvvm.rcp.", "nvvm.convert.", "nvvm.prmt", "nvvm.mapa",
)  # fmt: skip
_NOT_ELEMENTWISE = frozenset(
    ("llvm.atomicrmw", "llvm.cmpxchg", "llvm.fence", "llvm.intr.trap", "llvm.load")
)


class PoisonFlow:
    """The poison of one kernel's values, as the emitter writes it. `may` are the values that can be
    poisoned.
    """

    def __init__(self, e: PythonEmitter, kernel: KernelRecord) -> None:
        self.e = e
        self._sets: dict[Value, tuple[str, ...]] = {}
        self._divisors: dict[Value, str] = {}  # those asserted not to be zero, and their marks
        self.initial: list[str] = []  # variables that are None when the kernel begins
        self._divided = {
            value for op in kernel.walk() if op.name in _DIVISIONS for value in _made_of(op)
        }
        self.may: set[Value] = set()
        size = -1
        while size != len(self.may):
            size = len(self.may)
            self._analyse(kernel.body)

    # Which values may be poisoned -----------------------------------------------------------------

    def _analyse(self, region: OpRegion) -> None:
        for op in region.ops:
            for inner in op.regions:
                self._analyse(inner)
            if op.name in _CONTROL:
                self._control(op)
            elif op.name in _UNDEFINED or self._may_trap(op) or self._reads_unwritten(op):
                self.may.update(op.results)
            elif (_spreads(op) or op.name in ("nvvm.shfl.sync", "nvvm.mma.sync")) and any(
                v in self.may for v in op.operands
            ):
                self.may.update(op.results)

    def _reads_unwritten(self, op: Op) -> bool:
        if op.name not in _LOADS:
            return False
        pointer = op.operands[0]
        root = self.e.uniformity.root(pointer)
        if root is not None:
            return root.space in (3, 5)
        return isinstance(pointer.type, PtrType) and pointer.type.space in (0, 3, 5, 7)

    def _may_trap(self, op: Op) -> bool:
        if op.name not in _DIVISIONS:
            return False
        divisor = op.operands[1].defining
        text = divisor.attributes.get("value", "") if divisor is not None else ""
        known = re.match(r"-?\d+", text)
        return known is None or int(known[0]) == 0

    def _control(self, op: Op) -> None:
        ends = [region.terminator.operands for region in op.regions if region.ops]
        if op.name == "scf.for":
            carried = op.regions[0].args[1:]
            self._flow(op.operands[3:], carried)
            self._flow(ends[0], carried)
            self._flow(carried, op.results)
        elif op.name == "scf.while":
            before, after = op.regions
            passed = ends[0][1:]
            self._flow(op.operands, before.args)
            self._flow(ends[1], before.args)
            self._flow(passed, after.args)
            self._flow(passed, op.results)
        else:
            for end in ends:
                self._flow(end, op.results)
            if self._chooses(op) and op.operands[0] in self.may:
                self.may.update(op.results)

    def _flow(self, sources: list[Value], targets: list[Value]) -> None:
        pairs = zip(sources, targets, strict=False)
        self.may.update(to for source, to in pairs if source in self.may)

    # Names ----------------------------------------------------------------------------------------

    def names(self, *values: Value) -> tuple[str, ...]:
        """The variables that hold the poison of values."""
        out: dict[str, None] = {}
        for value in values:
            if value in self.may:
                out |= dict.fromkeys(self._sets.get(value) or (self.name(value),))
        return tuple(out)

    def name(self, value: Value) -> str:
        """The variable of a value that has one of its own."""
        return f"p{value.number}"

    def ref(self, *values: Value) -> str:
        """The expression of the joined poison of values."""
        names = self.names(*values)
        if len(names) < 2:
            return names[0] if names else "None"
        return f"(poison.join({', '.join(names)}) if {_any(names)} else None)"

    def alias(self, result: Value, to: Value) -> None:
        """Let a value's poison be that of another one from here on."""
        if result in self.may:
            self._sets[result] = (self.name(to),)
            if to not in self.may:
                self.may.add(to)

    def _let(self, value: Value, expression: str) -> None:
        self.e.globals["poison"] = poison
        self.e.line(f"{self.name(value)} = {expression}")

    def divides(self, op: Op, message: str) -> bool:
        """Write the poison of quotients by the divisor that the assertion `op` demands not to be
        zero; False if it is for no division.
        """
        compared = op.operands[0].defining
        if compared is None or compared.name not in ("arith.cmpi", "llvm.icmp"):
            return False
        divisor = compared.operands[0]
        if divisor not in self._divided:
            return False
        e = self.e
        mark = e.temporary("z")
        self._divisors[divisor] = mark
        self.initial.append(mark)
        e.globals["poison"] = poison
        e.line(f"if not np.all({e.ref(op.operands[0])}):")
        text = message.partition(": ")[2]
        zero = f"~np.asarray({e.ref(op.operands[0])})"
        e.line(f"    {mark} = poison.by_zero(g, {zero}, {e.mask}, {text!r}, {e.at()})")
        with e.indented("else:"):
            e.line(f"{mark} = None")
        return True

    def _quotient(self, op: Op, result: Value) -> None:
        e = self.e
        names = list(self.names(*op.operands))
        names += [self._divisors[v] for v in _made_of(op) if v in self._divisors]
        if self._may_trap(op) and op.operands[1] not in self._divisors:
            mark, zero = e.temporary("z"), f"{e.ref(op.operands[1])} == 0"
            e.globals["poison"] = poison
            text = "integer division by zero"
            call = f"poison.by_zero(g, {zero}, {e.mask}, {text!r}, {e.at()})"
            e.line(f"{mark} = {call} if np.any({zero}) else None")
            names.append(mark)
        self._sets[result] = tuple(dict.fromkeys(names))

    # Around an operation --------------------------------------------------------------------------

    def before(self, op: Op) -> None:
        """Write the checks of poisoned operands that `op` must not have."""
        if op.name in _IGNORED:
            return
        if op.name == "llvm.load":
            self.use(op.operands[:1], "is the address of this read")
        elif op.name == "scf.for":
            self.use(op.operands[:3], "is a bound of this loop")
        elif self._chooses(op):
            return
        elif op.name in ("scf.if", "scf.index_switch", "cf.assert"):
            self.use(op.operands[:1], "decides this branch")
        elif op.name == "scf.while" or _spreads(op):
            return
        elif op.name in ("nvvm.shfl.sync", "nvvm.mma.sync"):
            self.use([v for v in op.operands if v not in _data(op)], "is used here")
        else:
            self.use(op.operands, "is used here")

    def use(self, values: Iterable[Value], role: str) -> None:
        """Write the report of poisoned values that an operation uses in a role."""
        e = self.e
        for name in self.names(*values):
            e.globals["poison"] = poison
            e.line(f"if {name} is not None: poison.use(g, {name}, {e.mask}, {role!r}, {e.at()})")

    def after(self, op: Op, rule: EmitRule) -> None:
        """Write the poison of the results of `op`."""
        results = [r for r in op.results if r in self.may]
        if self._chooses(op):
            self._chosen(op, results)
        if not results or op.name in _CONTROL or op.name in _LOADS:
            return
        e = self.e
        if op.name in _UNDEFINED:
            mark = e.const(poison.undefined(op.site), "undefined")
            self._sets[results[0]] = (mark,)
        elif op.name == "nvvm.mma.sync":
            self._product(op, results[0])
        elif op.name == "nvvm.shfl.sync" or op.name in _MOVES:
            self._moved(op, rule)
        elif op.name in _DIVISIONS:
            self._quotient(op, results[0])
        elif op.name in _SELECTS:
            condition, yes, no = op.operands
            call = ", ".join(self.ref(v) for v in (condition, yes, no))
            some = _any(self.names(*op.operands))
            self._let(results[0], f"poison.select({e.ref(condition)}, {call}) if {some} else None")
        elif op.name in _BITCASTS and not _same_count(op):
            (source,), (result,) = op.operands, results
            old, new = _count(source.type), _count(result.type)
            name = self._single(source)
            self._let(result, f"poison.bitcast({name}, {old}, {new}) if {name} else None")
        elif op.name.startswith(_FOLDS):
            joined = self.ref(*op.operands)
            self._let(results[0], f"poison.folded({joined})")
        else:
            for result in results:
                self._elementwise(result, op.operands)

    def _chooses(self, op: Op) -> bool:
        """True for a branch that only computes a result from registers, as `a if c else b` does: it
        is a selection. Indices of registers may be checked in it.
        """
        return (
            op.name == "scf.if"
            and bool(op.results)
            and all(
                inner.name in ("scf.yield", "cf.assert")
                or (inner.name == "llvm.load" and self._in_registers(inner.operands[0]))
                or (_spreads(inner) and inner.name not in _DIVISIONS)
                for region in op.regions
                for inner in region.ops
            )
        )

    def _in_registers(self, pointer: Value) -> bool:
        root = self.e.uniformity.root(pointer)
        return root is not None and root.space == 5

    def _chosen(self, op: Op, results: list[Value]) -> None:
        """Poison what a branch without effects gives where its condition is poisoned."""
        for condition in self.names(op.operands[0]) if results else ():
            self.e.globals["poison"] = poison
            with self.e.indented(f"if {condition} is not None:"):
                for result in results:
                    name = self.name(result)
                    self.e.line(f"{name} = poison.join({name}, {condition})")

    def _single(self, value: Value) -> str:
        names = self.names(value)
        if len(names) == 1:
            return names[0]
        held = self.e.temporary("q")
        self.e.globals["poison"] = poison
        self.e.line(f"{held} = {self.ref(value)}")
        return held

    def _elementwise(self, result: Value, operands: list[Value]) -> None:
        names = self.names(*operands)
        if len(names) > _MOST:
            self._let(result, self.ref(*operands))
        else:
            self._sets[result] = names

    def _moved(self, op: Op, rule: EmitRule) -> None:
        """Let the rule of `op` move the masks as it moves the data."""
        e = self.e
        data = _data(op)
        sources = self.names(*data)
        e.globals["poison"] = poison
        whole = {value: f"poison.full({self.ref(value)}, {_shape(e, value)})" for value in data}
        moved = {result: e.temporary("x") for result in op.results}
        with e.indented(f"if {_any(sources)}:"), e.standing_for({**whole, **moved}):
            rule.apply(e, op)
            names = ", ".join(sources)
            for result in op.results:
                e.line(f"{self.name(result)} = poison.moved({moved[result]}, {names})")
        with e.indented("else:"):
            e.line(" = ".join(self.name(result) for result in op.results) + " = None")

    def _product(self, op: Op, result: Value) -> None:
        e = self.e
        parts = op.segments()
        texts = ", ".join(f"[{', '.join(self.ref(v) for v in part)}]" for part in parts)
        e.globals["matrix"] = matrix
        what = e.products[op]
        call = f"matrix.product_poison(g, {what}, {texts})"
        self._let(result, f"{call} if {_any(self.names(*op.operands))} else None")

    # For the rules of loads and of control flow ---------------------------------------------------

    def take(self, result: Value) -> None:
        """Write the poison that a load has left in the group."""
        if result in self.may:
            self.e.line(f"{self.name(result)}, g.poison = g.poison, None")

    def assigned(self, targets: Iterable[Value], sources: Iterable[Value]) -> list[tuple[str, str]]:
        """Pairs of variables and expressions that give targets the poison of sources."""
        pairs = zip(targets, sources, strict=True)
        self.e.globals["poison"] = poison
        return [(self.name(t), self.ref(s)) for t, s in pairs if t in self.may]

    def kept(self, target: Value, source: Value, mask: str, old: str | None = None) -> str:
        """The expression of a target's poison where only the lanes of `mask` get the source's."""
        self.e.globals["poison"] = poison
        return f"poison.keep({mask}, {self.ref(source)}, {old or self.name(target)})"


def _any(names: Iterable[str]) -> str:
    return " or ".join(f"{name} is not None" for name in names)


def _made_of(op: Op) -> list[Value]:
    """The divisor of a division, and what was made safe to give it."""
    found, left = [], [op.operands[1]]
    while left:
        value = left.pop()
        found.append(value)
        if value.defining is not None and value.defining.name in _SAFE:
            left += value.defining.operands
    return found


def _spreads(op: Op) -> bool:
    """True for operations whose results are poisoned by their operands."""
    if op.regions or not op.results:
        return False
    if op.name == "llvm.inline_asm":
        return "has_side_effects" not in op.attributes
    return _is_elementwise(op.name)


@functools.cache
def _is_elementwise(name: str) -> bool:
    return name.startswith(_ELEMENTWISE) and name not in _NOT_ELEMENTWISE | _IGNORED


def _data(op: Op) -> list[Value]:
    if op.name == "nvvm.shfl.sync":
        return op.operands[1:2]
    if op.name == "nvvm.mma.sync":
        return op.operands
    count = _MOVES[op.name]
    return op.operands[:count] if count else op.operands


def _count(type_: Type) -> int:
    return type_.count if isinstance(type_, VectorType) else 0


def _same_count(op: Op) -> bool:
    return _count(op.operands[0].type) == _count(op.results[0].type)


def _shape(e: PythonEmitter, value: Value) -> str:
    return _shape_of(value.type, "lanes" if e.varying(value) else "")


def _shape_of(type_: Type, lanes: str) -> str:
    if isinstance(type_, VectorType):
        return f"({', '.join(map(str, type_.shape))}, {lanes or 1})"
    if is_aggregate(type_):
        return f"[{', '.join(_shape_of(field, lanes) for field in aggregate_fields(type_))}]"
    return f"({lanes},)" if lanes else "()"
