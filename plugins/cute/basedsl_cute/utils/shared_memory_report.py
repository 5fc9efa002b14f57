"""Reports of the shared memory that the kernels of a compiled function allocate, and its places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from basedsl_cute.dialect.attributes import DYNAMIC_SMEM_ALIGNMENT, SMEM_ALIGNMENT
from basedsl_cute.dialect.types import read_space
from basedsl_cute.hardware.targets import STATIC_SMEM


@dataclass(frozen=True)
class Allocation:
    """An allocation of shared memory: `bytes` from `offset` on, of the tensor type `type`.

    `name` is the variable or struct, `fields` the fields of a struct with their offsets from its
    beginning; offsets, sizes and alignments are in bytes.
    """

    name: str
    offset: int
    bytes: int
    alignment: int
    type: str
    fields: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class SmemPlan:
    """The shared memory of one kernel.

    ptxas lays out statically allocated memory in any order; the offsets are then those it has if
    ptxas keeps ours.
    """

    kernel: str
    allocations: tuple[Allocation, ...]
    dynamic: bool

    @property
    def bytes(self) -> int:
        """The sum of all allocations with padding, in bytes."""
        end = max((a.offset + a.bytes for a in self.allocations), default=0)
        unit = DYNAMIC_SMEM_ALIGNMENT if self.dynamic else 1
        return -(-end // unit) * unit

    def __str__(self) -> str:
        kind = "dynamic" if self.dynamic else "static"
        lines = [f"{self.kernel}: {self.bytes} bytes of {kind} shared memory"]
        for a in self.allocations:
            lines.append(
                f"  {a.offset:>7} .. {a.offset + a.bytes:<7} {a.name or '-'}: {a.type}, "
                f"{a.bytes} bytes, align {a.alignment}"
            )
            lines += [f"  {a.offset + at:>7}    .{name}" for name, at in a.fields]
        return "\n".join(lines)


@dataclass(frozen=True)
class SmemReport:
    """The plans of all kernels of a compiled function; prints as a table, and is indexed by
    name.
    """

    kernels: tuple[SmemPlan, ...]

    def __getitem__(self, kernel: str) -> SmemPlan:
        for plan in self.kernels:
            if plan.kernel == kernel:
                return plan
        raise KeyError(kernel)

    def __str__(self) -> str:
        return "\n".join(map(str, self.kernels)) or "no kernels"


_FUNCTION = re.compile(r"gpu\.func @([\w$.]+)")
_ALLOC = re.compile(
    r'"cute\.alloc_smem"\(\) \{([^}]*)\} : \(\) -> '
    r'!cute\.memref<([^,]+), "([^"]*)", "([^"]*)">'
)


def smem_report(compiled: Any) -> SmemReport:
    """Return the shared memory that the kernels of a compiled function allocate.

    `compiled` is the result of `cute.compile`. Its `print` is a table of allocations by kernel.
    """
    plans: list[SmemPlan] = []
    kernel = ""
    found: list[re.Match[str]] = []
    for line in compiled.__mlir__.splitlines():
        function = _FUNCTION.search(line)
        if function:
            if kernel:
                plans.append(_plan(kernel, found))
            kernel, found = function[1], []
        alloc = _ALLOC.search(line)
        if alloc:
            found.append(alloc)
    if kernel:
        plans.append(_plan(kernel, found))
    return SmemReport(tuple(plans))


def _plan(kernel: str, found: list[re.Match[str]]) -> SmemPlan:
    allocations: list[Allocation] = []
    end = 0
    for match in found:
        given, element, place, layout = match.groups()
        nbytes = re.search(r"bytes = (\d+)", given)[1]  # type: ignore[index]
        texts = dict(re.findall(r'(\w+) = "([^"]*)"', given))
        parts = [part.split(":") for part in texts.get("fields", "").split(";") if part]
        fields = tuple((name, int(at)) for name, at in parts)
        alignment = max(read_space(place)[1] or 1, SMEM_ALIGNMENT)
        start = -(-end // alignment) * alignment
        end = start + int(nbytes)
        kind = f"{element} {layout}"
        name = texts.get("name", "")
        allocations.append(Allocation(name, start, int(nbytes), alignment, kind, fields))
    return SmemPlan(kernel, tuple(allocations), end > STATIC_SMEM)
