"""Detection of loops that index tensors in registers by the loop's index.

Registers have no addresses, so such a loop has to be unrolled completely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# The most iterations, and operations after unrolling, that are unrolled without a hint.
MOST_TRIPS = 512
MOST_OPERATIONS = 1 << 15

_ACCESSES = {"cute.load": 1, "cute.store": 2, "cute.view": 1}  # op -> place of the index


def indexes_registers(loop: Any) -> bool:
    """Return True for an `scf.for` with static bounds and few iterations that indexes registers."""
    trips = _trips(loop)
    if trips is None or not 1 < trips <= MOST_TRIPS:
        return False
    body = loop.regions[0].blocks[0]
    derived = {body.arguments[0]}
    found, count = False, 0
    for op in _operations(body):
        count += 1
        operands = list(op.operands)
        depends = any(value in derived for value in operands)
        if not depends:
            continue
        derived.update(op.results)
        place = _ACCESSES.get(op.name)
        if place is not None and operands[place] in derived:
            found = found or '"rmem' in str(operands[place - 1].type)
    return found and count * trips <= MOST_OPERATIONS


def _operations(block: Any) -> Iterator[Any]:
    """Yield the operations of a block and of its nested regions, outer ones first."""
    for op in block.operations:
        inner = op.operation
        yield inner
        for region in inner.regions:
            for one in region.blocks:
                yield from _operations(one)


def _trips(loop: Any) -> int | None:
    """Return the trip count of a loop; None unless its bounds are constants."""
    start, stop, step = map(_constant, list(loop.operands)[:3])
    if start is None or stop is None or step is None:
        return None
    return max(0, -(-(stop - start) // step)) if step > 0 else None


def _constant(value: Any) -> int | None:
    owner = value.owner
    if getattr(owner, "name", "") != "arith.constant":
        return None
    number = owner.attributes["value"]
    found = getattr(number, "value", None)
    return found if type(found) is int else None
