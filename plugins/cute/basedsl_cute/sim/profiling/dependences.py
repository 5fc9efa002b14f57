"""Dependences of a kernel's operations on those that take long: loads, shuffles, products.

Of an operation, the *producers* are the long operations whose results it reads, through whatever
becomes no instruction: casts, parts of vectors, loop-carried variables, local arrays that ptxas
keeps in registers. What reads a result of ordinary arithmetic has no producers, since the
arithmetic had to wait for them.
"""

from __future__ import annotations

from collections import defaultdict

from basedsl_cute.sim.profiling.operations import ProfiledOperation
from basedsl_cute.sim.translate.attributes import parse_int
from basedsl_cute.sim.translate.records import KernelRecord, Op, OpRegion, Value
from basedsl_cute.sim.translate.register_uses import DERIVING
from basedsl_cute.sim.translate.types import parse_type

DYNAMIC_INDEX = -(1 << 31)  # LLVM's mark of an index that is an operand

LONG_KINDS = frozenset(
    ["global load", "shared load", "generic load", "constant load", "cluster load", "matrix load",
     "global atomic", "shared atomic", "generic atomic", "warp", "tensor core", "inline PTX",
     "tensor memory"]
)  # fmt: skip


class Dependences:
    """The producers of the operations of one kernel, `operations` by the op that each records."""

    def __init__(self, record: KernelRecord, operations: dict[Op, ProfiledOperation]) -> None:
        self._operations = operations
        self._carried: dict[Value, list[Value]] = {}
        # By the local array: the values stored, each with the bytes that it goes to.
        self._stores: dict[Value, list[tuple[Value, range | None]]] = defaultdict(list)
        self._known: dict[Value, frozenset[ProfiledOperation]] = {}
        self._region(record.body)

    def producers(self, op: Op) -> frozenset[ProfiledOperation]:
        """The long operations whose results `op` reads."""
        out: set[ProfiledOperation] = set()
        for operand in op.operands:
            out |= self._of(operand)
        known = self._operations.get(op)
        if known is not None and known.kind == "tensor core":
            # Sums go through the unit in order; accumulators in one array look alike here.
            out = {one for one in out if one.kind != "tensor core"}
        return frozenset(out)

    def _region(self, region: OpRegion) -> None:
        for op in region.ops:
            self._note(op)
            for inner in op.regions:
                self._region(inner)

    def _note(self, op: Op) -> None:
        match op.name:
            case "scf.for":
                (body,) = op.regions
                yielded = body.terminator.operands
                triples = zip(body.args[1:], op.operands[3:], yielded, strict=True)
                for arg, first, again in triples:
                    self._carried[arg] = [first, again]
                for result, last in zip(op.results, yielded, strict=True):
                    self._carried[result] = [last]
            case "scf.while":
                before, after = op.regions
                passed = before.terminator.operands[1:]
                for arg, first, again in zip(
                    before.args, op.operands, after.terminator.operands, strict=True
                ):
                    self._carried[arg] = [first, again]
                for arg, result, value in zip(after.args, op.results, passed, strict=True):
                    self._carried[arg] = self._carried[result] = [value]
            case "scf.if" | "scf.index_switch":
                for region in op.regions:
                    if region.ops:
                        pairs = zip(op.results, region.terminator.operands, strict=False)
                        for result, value in pairs:
                            self._carried.setdefault(result, []).append(value)
            case "llvm.store":
                array, place = _local_place(op.operands[1], op.operands[0].type.size)
                if array is not None:
                    self._stores[array].append((op.operands[0], place))

    def _of(self, value: Value) -> frozenset[ProfiledOperation]:
        found = self._known.get(value)
        if found is not None:
            return found
        self._known[value] = frozenset()  # while a loop's variable is being followed
        self._known[value] = found = self._find(value)
        return found

    def _find(self, value: Value) -> frozenset[ProfiledOperation]:
        op, sources = value.defining, self._carried.get(value)
        if sources is None:
            if op is None:
                return frozenset()
            operation = self._operations.get(op)
            if operation is not None:
                return frozenset([operation]) if operation.kind in LONG_KINDS else frozenset()
            sources = op.operands
            if op.name == "llvm.load":
                array, place = _local_place(op.operands[0], value.type.size)
                stored = [] if array is None else self._stores[array]
                sources = [one for one, there in stored if _overlap(there, place)]
        out: set[ProfiledOperation] = set()
        for source in sources:
            out |= self._of(source)
        return frozenset(out)


def _local_place(pointer: Value, size: int) -> tuple[Value | None, range | None]:
    """The alloca that a pointer comes from, None for other memory, and which of its bytes an access
    of `size` bytes touches, None if that is not known while translating.
    """
    offset: int | None = 0
    while pointer.defining is not None and pointer.defining.name in DERIVING:
        op = pointer.defining
        if op.name == "llvm.getelementptr" and offset is not None:
            step = _constant_offset(op)
            offset = None if step is None else offset + step
        pointer = op.operands[0]
    made = pointer.defining
    if made is None or made.name != "llvm.alloca":
        return None, None
    return pointer, None if offset is None else range(offset, offset + max(size, 1))


def _constant_offset(op: Op) -> int | None:
    """The bytes that a getelementptr of one index adds; None if it is not a constant."""
    indices = op.integers("rawConstantIndices")
    if len(indices) != 1:
        return None
    index = indices[0]
    if index == DYNAMIC_INDEX:
        made = op.operands[1].defining
        if made is None or made.name not in ("arith.constant", "llvm.mlir.constant"):
            return None
        index = parse_int(made.attributes["value"])
    return index * parse_type(op.attributes["elem_type"]).size


def _overlap(a: range | None, b: range | None) -> bool:
    return a is None or b is None or (a.start < b.stop and b.start < a.stop)
