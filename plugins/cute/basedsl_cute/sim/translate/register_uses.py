"""Analysis of local arrays: those that can be kept as registers.

They are the allocas whose uses are all plain loads and stores, or wgmma, of one element size.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from basedsl_cute.dialect.warpgroup import WGMMA_TYPES
from basedsl_cute.sim.translate.records import KernelRecord, Op, Value
from basedsl_cute.sim.translate.types import IntType, Type, element_type

# The results of these ops point into the same object as their first operands.
DERIVING = ("llvm.getelementptr", "llvm.addrspacecast", "llvm.bitcast")

_HINTS = ("llvm.intr.lifetime.start", "llvm.intr.lifetime.end")


class Use(NamedTuple):
    """A use of an array as registers: bytes of an element, and True if a wgmma uses it."""

    itemsize: int
    multiplied: bool


def register_uses(kernel: KernelRecord) -> dict[Value, Use]:
    """The allocas that can be register arrays, by the values they define."""
    ops = kernel.walk()
    allocas = [op for op in ops if op.name == "llvm.alloca"]
    if not allocas:
        return {}
    uses: dict[Value, list[tuple[Op, int]]] = defaultdict(list)
    for op in ops:
        for position, operand in enumerate(op.operands):
            uses[operand].append((op, position))
    out = {}
    for op in allocas:
        found = _accesses(op.results[0], uses)
        if found is not None and len(found[0]) == 1:
            out[op.results[0]] = Use(found[0].pop(), found[1])
    return out


def _accesses(
    pointer: Value, uses: dict[Value, list[tuple[Op, int]]]
) -> tuple[set[int], bool] | None:
    """Sizes of the elements read and written through `pointer`, and True if a wgmma does; None if
    another kind of op uses the pointer.
    """
    sizes: set[int] = set()
    multiplied = False
    left = [pointer]
    while left:
        for op, position in uses[left.pop()]:
            if op.name in DERIVING and position == 0:
                left.append(op.results[0])
            elif op.name == "llvm.load":
                sizes.add(_element_size(op.results[0].type))
            elif op.name == "llvm.store" and position == 1:
                sizes.add(_element_size(op.operands[0].type))
            elif op.name == "cute.ptx_wgmma":
                sizes.add(_wgmma_element_size(op, position))
                multiplied = True
            elif op.name not in _HINTS:
                return None
    return None if 0 in sizes else (sizes, multiplied)


def _wgmma_element_size(op: Op, position: int) -> int:
    """Bytes of an accumulator, or of an element of A in registers."""
    if position == 0:
        return 2 if op.string("d_type") == "f16" else 4
    return 32 // WGMMA_TYPES[op.string("a_type")].k


def _element_size(type_: Type) -> int:
    element = element_type(type_)
    if isinstance(element, IntType) and not element.native:
        return 0
    return element.size
