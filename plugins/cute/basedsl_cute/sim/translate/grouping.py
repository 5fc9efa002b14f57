"""Grouping of operations that do the same to different registers, so that one call does them all.

Kernels multiply by many instructions in a row, each between loads of its operands from registers
and stores of its results. Those of a group move together: the loads before, the stores behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from basedsl_cute.sim.machine.access import RegisterArray
from basedsl_cute.sim.translate.records import Op, OpRegion, Value


class RegisterBytes(NamedTuple):
    """Bytes of a local array that is kept in registers."""

    array: RegisterArray
    first: int
    end: int

    def meet(self, other: RegisterBytes) -> bool:
        """True if the two share a byte."""
        same = self.array is other.array
        return same and self.first < other.end and other.first < self.end


RowsOf = Callable[[Op], RegisterBytes | None]
"""The rows of registers that a load or store touches, None where they are not known."""

_STATIC = ("llvm.getelementptr", "llvm.mlir.constant", "arith.constant")
# Operations whose results are bits of their operands.
SAME_BITS = ("vector.from_elements", "vector.extract", "vector.bitcast", "llvm.bitcast")
_RESHAPING = ("llvm.extractvalue", *SAME_BITS)
# Operations that only compute: they touch no memory and wait for nobody.
_PURE = ("arith.", "llvm.ptrtoint", "llvm.inttoptr", *SAME_BITS, *_STATIC)


class Bundle(NamedTuple):
    """A group of operations, with the loads of registers that it alone uses, as they are or as
    other types, and what takes its results, so that no value of it is used elsewhere.
    """

    loads: list[Op]
    ops: list[Op]
    behind: list[Op]

    @property
    def all(self) -> list[Op]:
        """All operations, in order."""
        return [*self.loads, *self.ops, *self.behind]


class Grouping:
    """The operations of a region in another order, with the same meaning: `groups` has by their
    first one those that `can_group` and are independent, and `behind` what takes their results.
    """

    def __init__(self, region: OpRegion, can_group: Callable[[Op], bool], rows_of: RowsOf) -> None:
        self.groups: dict[Op, list[Op]] = {}
        self.behind: dict[Op, list[Op]] = {}
        self._rows_of = rows_of
        self._out: list[Op] = []
        self._group: list[Op] = []
        self._behind: list[Op] = []  # what takes the results of the group
        self._results: set[Value] = set()
        self._written: list[RegisterBytes] = []
        for op in region.ops:
            if not self._group or not (self._follows(op) or self._passes(op)):
                self._close()
                if can_group(op):
                    self._join(op)
                else:
                    self._out.append(op)
        self._close()
        self.region = OpRegion(region.args, self._out)

    def _join(self, op: Op) -> None:
        self._group.append(op)
        self._results.update(op.results)

    def _follows(self, op: Op) -> bool:
        """Take an operation that joins the group, or that takes its results."""
        taken = [value for value in op.operands if value in self._results]
        first = self._group[0]
        alike = op.name == first.name and op.attributes == first.attributes
        if alike and not taken and op.site.span == first.site.span:  # reports name one line
            self._join(op)
            return True
        if not taken:
            return False
        if op.name in _RESHAPING and len(taken) == len(op.operands):
            self._results.update(op.results)
        elif op.name == "llvm.store" and op.operands[1] not in taken:
            rows = self._rows_of(op)
            if rows is None:
                return False
            self._written.append(rows)
        else:
            return False
        self._behind.append(op)
        return True

    def _passes(self, op: Op) -> bool:
        """Take an operation that can come before the group."""
        if op.name == "llvm.load":
            rows = self._rows_of(op)
            if rows is None or any(rows.meet(other) for other in self._written):
                return False
            if not any(_is_loaded(value) for value in self._group[0].operands):
                return False  # the next group's operand
        elif not op.name.startswith(_PURE) or not self._results.isdisjoint(op.operands):
            return False
        self._out.append(op)
        return True

    def _close(self) -> None:
        if len(self._group) > 1:
            self.groups[self._group[0]] = self._group
            self.behind[self._group[0]] = self._behind
        self._out += [*self._group, *self._behind]
        self._group, self._behind, self._written = [], [], []
        self._results = set()


def _is_loaded(value: Value) -> bool:
    op = value.defining
    while op is not None and op.name in SAME_BITS:
        op = op.operands[0].defining
    return op is not None and op.name == "llvm.load"


def same_loads(before: list[Op], rows_of: RowsOf) -> dict[Value, Value]:
    """The values of loads at the end of a list of operations, with nothing but loads and addresses
    after them: each with the first one of the same rows and type.
    """
    first: dict[tuple[RegisterBytes, str], Value] = {}
    found: dict[Value, Value] = {}
    for op in reversed(before):
        if op.name == "llvm.load":
            rows = rows_of(op)
            if rows is None:
                break
            (result,) = op.results
            found[result] = first.setdefault((rows, str(result.type)), result)
        elif op.name not in _STATIC:
            break
    return found


def bundles_of(grouping: Grouping, rows_of: RowsOf) -> dict[Op, Bundle]:
    """The groups of a region that are bundles, by their first operations."""
    users: dict[Value, set[Op]] = {}
    for op in grouping.region.ops:
        for inner in op.walk():
            for value in inner.operands:
                users.setdefault(value, set()).add(inner)
    found: dict[Op, Bundle] = {}
    for at, first in enumerate(grouping.region.ops):
        if first not in grouping.groups:
            continue
        group, behind = grouping.groups[first], grouping.behind[first]
        members, loads = set(group), []
        for op in reversed(grouping.region.ops[:at]):
            if op.name in SAME_BITS or (op.name == "llvm.load" and rows_of(op) is not None):
                if users.get(op.results[0], set()) <= members:
                    loads.append(op)
                    members.add(op)
            elif not op.name.startswith(_PURE):
                break
        bundle = Bundle(loads[::-1], group, behind)
        inside = set(bundle.all)
        if all(users.get(value, set()) <= inside for op in bundle.all for value in op.results):
            found[first] = bundle
    return found
