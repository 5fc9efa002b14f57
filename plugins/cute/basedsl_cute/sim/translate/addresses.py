"""Addresses that are known while translating: of local arrays and their elements."""

from __future__ import annotations

from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.types import (
    ArrayType,
    LLVMStructType,
    Type,
    VectorType,
    parse_type,
    round_up,
)

DYNAMIC = -(2**31)
"""The index in `rawConstantIndices` of one that is an operand."""


def step_into(type_: Type, index: int | None) -> tuple[Type, int]:
    """The type of a member, and the byte offset of `index`; for a dynamic one, None, the stride."""
    if isinstance(type_, LLVMStructType):
        assert index is not None
        return type_.fields[index], type_.offsets[index]
    assert isinstance(type_, ArrayType | VectorType)
    inner = type_.element
    stride = inner.size if isinstance(type_, VectorType) else round_up(inner.size, inner.align)
    return inner, stride if index is None else stride * index


def local_address(value: Value, local: dict[int, int]) -> int | None:
    """The address that a pointer has, if it is known to be that of an alloca or a place in it;
    `local` has those of allocas, by number.
    """
    op = value.defining
    if op is None:
        return None
    if op.name == "llvm.alloca":
        return local.get(value.number)
    if op.name != "llvm.getelementptr":
        return None
    base, offset = local_address(op.operands[0], local), _static_offset(op)
    return None if base is None or offset is None else base + offset


def _static_offset(op: Op) -> int | None:
    indices = op.integers("rawConstantIndices")
    if DYNAMIC in indices:
        return None
    type_ = parse_type(op.attributes["elem_type"])
    offset = round_up(type_.size, type_.align) * indices[0]
    for index in indices[1:]:
        type_, step = step_into(type_, index)
        offset += step
    return offset
