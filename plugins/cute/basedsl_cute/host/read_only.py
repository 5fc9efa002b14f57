"""A check of traced code: nothing is written through an argument that is read-only.

Arrays of JAX are immutable, those of NumPy may be: their memory must not change behind the backs of
those who share it. Writes through what a loop carries, by TMA and by inline PTX are not seen here;
the simulator finds them when they happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from basedsl import DSLTypeError, Trace, span_of_location
from basedsl_cute.dialect.cute_trace import cute_trace

# The place, among the operands, of the tensor that an operation writes (`dialect/ops.py`).
_WRITTEN = {"cute.store": 1, "cute.copy": 1, "cute.atomic_rmw": 1, "cute.atomic_cas": 2}
# Operations whose result is the memory of their first operand.
_VIEWS = {
    "cute.view",
    "cute.recast",
    "cute.iterator",
    "cute.make_memref",
    "llvm.getelementptr",
    "llvm.addrspacecast",
}
_HINT = (
    "pass an array that may be written; of JAX arrays cute.jax.jax_callable makes new outputs, and "
    "cute.jax.donate(x) gives one away to be written"
)


def check_read_only(trace: Trace) -> None:
    """Raise DSLTypeError for a write through an argument whose array is read-only."""
    record = cute_trace(trace)
    if not record.read_only:
        return
    known = list(record.read_only)
    for parameter, operand in record.kernel_operands:
        known += [(parameter, name) for value, name in known if value == _root(operand)]
    for op in _operations(trace.module.operation):
        if op.name not in _WRITTEN:
            continue
        written = _root(op.operands[_WRITTEN[op.name]])
        for value, name in known:
            if value == written:
                raise DSLTypeError(
                    f"'{name}' is written, and its array is read-only",
                    span_of_location(op.location),
                    hint=_HINT,
                )


def _root(value: Any) -> Any:
    """Follow views of a tensor to the value that they began as."""
    while True:
        owner = getattr(value.owner, "operation", value.owner)
        if getattr(owner, "name", "") not in _VIEWS:  # a block owns its arguments
            return value
        value = owner.operands[0]


def _operations(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from _operations(inner.operation)
