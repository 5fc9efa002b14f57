"""Emission of ops of the nvvm dialect at the user's line, for the wrappers of `arch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from basedsl import DSLTypeError, Int32, as_numeric, with_article
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.pointer import Pointer


def emit_op(
    what: str,
    name: str,
    operands: Sequence[Any] = (),
    results: Sequence[str] = (),
    attributes: Mapping[str, str] | None = None,
) -> Any:
    """Emit the op `name` and return it.

    `what` is the user's call, for errors; `results` and `attributes` are MLIR text.
    """
    trace = in_kernel(what)
    ir = trace.ir
    return trace.emit(
        ir.Operation.create,
        name,
        results=[ir.Type.parse(text) for text in results],
        operands=list(operands),
        attributes={key: ir.Attribute.parse(text) for key, text in (attributes or {}).items()},
    )


def i32(value: Any) -> Any:
    """Return `value` as an SSA value of type i32; DSLTypeError for a float."""
    number = as_numeric(value)
    if type(number).is_float:
        raise DSLTypeError(f"an integer is needed here, not {with_article(type(number))}")
    return (number if number.width == 32 else number.to(Int32)).ir_value()


def shared_address(pointer: Pointer, what: str) -> Any:
    """Return the `!llvm.ptr<3>` of a pointer into shared memory; DSLTypeError for anything else."""
    if not isinstance(pointer, Pointer) or pointer.space != "smem":
        got = pointer if isinstance(pointer, Pointer) else with_article(type(pointer))
        raise DSLTypeError(
            f"{what} takes a pointer into shared memory, got {got}",
            hint="allocate one: cute.utils.SmemAllocator().allocate_array(cute.Int64, 2)",
        )
    return pointer.llvm_ptr
