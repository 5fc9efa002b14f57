"""Checks that an operation is used inside a kernel, and facts about that kernel."""

from __future__ import annotations

import math
from typing import Any

from basedsl import DSLError, Trace, current_trace


def in_kernel(what: str) -> Trace:
    """The running trace; DSLError, with `what` as its subject, unless it traces a kernel."""
    trace = current_trace(what)
    if trace.function_kind != "kernel":
        raise DSLError(
            f"{what} can only be used in a kernel; '{trace.function_name}' runs on the host",
            hint="call it in a @kernel function, or in a function that a kernel calls",
        )
    return trace


def kernel_operation(what: str) -> Any:
    """Return the `gpu.func` that is being traced; DSLError, about `what`, outside of a kernel."""
    op = in_kernel(what).ir.InsertionPoint.current.block.owner.operation
    while op.name != "gpu.func":
        op = op.parent.operation
    return op


def block_threads() -> int | None:
    """The most threads that a block of the kernel can have; None if no launch declares it."""
    ir = in_kernel("block_threads()").ir
    op = kernel_operation("block_threads()")
    for name in ("known_block_size", "nvvm.maxntid"):
        if name in op.attributes:
            sizes = ir.DenseI32ArrayAttr(op.attributes[name])
            return math.prod(int(n) or 1 for n in sizes)
    return None
