"""Tensors in registers of two branches stay two: their code is not shared.

    if is_large: work(x)
    else: work(y)

MLIR merges equal blocks of such branches, and passes what differs as arguments. Where these are
addresses of the thread's stack, LLVM's SROA can't make values of the slots behind them, and the
tensors lie in local memory. An attribute that names the slots makes the blocks differ.
"""

from __future__ import annotations

from typing import Any

_ATTRIBUTE = "cute.slots"
_ACCESSES = frozenset(("llvm.load", "llvm.store"))


def name_slots(ir: Any, functions: list[Any]) -> None:
    """Name the slots of the stack that a part of a branch accesses, on the first access, in those
    of `functions` that have branches with an alternative.
    """
    for function in functions:
        _Slots(ir).visit(function)


def has_alternative(condition: Any) -> bool:
    """Return True for an `scf.if` whose second branch does something."""
    blocks = list(condition.regions[1].blocks)
    return bool(blocks) and len(blocks[0].operations) > 1


class _Slots:
    """The numbers of the slots of one function, in the order in which they are met."""

    def __init__(self, ir: Any) -> None:
        self._ir = ir
        self._numbers: dict[Any, int] = {}

    def visit(self, op: Any) -> None:
        """Name the slots of each part of the blocks in `op`, which operations with regions end."""
        for region in op.regions:
            for block in region.blocks:
                first: Any = None
                slots: set[int] = set()
                for inner in block.operations:
                    operation = inner.operation
                    if len(operation.regions):
                        self._name(first, slots)
                        first, slots = None, set()
                        self.visit(operation)
                    elif operation.name in _ACCESSES:
                        slot = self._slot(operation)
                        if slot is not None:
                            first = first or operation
                            slots.add(slot)
                self._name(first, slots)

    def _slot(self, access: Any) -> int | None:
        """Return the number of the slot that a load or a store accesses; None for other memory."""
        owner = access.operands[0 if access.name == "llvm.load" else 1].owner
        while getattr(owner, "name", "") == "llvm.getelementptr":
            owner = owner.operands[0].owner
        if getattr(owner, "name", "") != "llvm.alloca":
            return None
        return self._numbers.setdefault(owner.results[0], len(self._numbers))

    def _name(self, access: Any, slots: set[int]) -> None:
        if access is not None:
            access.attributes[_ATTRIBUTE] = self._ir.DenseI32ArrayAttr.get(sorted(slots))
