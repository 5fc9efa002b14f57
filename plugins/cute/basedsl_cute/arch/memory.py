"""Single loads and stores with PTX's semantics; shared memory of the block."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int64, as_numeric
from basedsl_cute.arch.indices import in_kernel
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import Load, Store
from basedsl_cute.tensors.make_tensor import alloc_smem as _alloc_smem
from basedsl_cute.tensors.make_tensor import pointer_of
from basedsl_cute.tensors.pointer import Pointer, as_element, element_bytes, recast_ptr
from basedsl_cute.tensors.smem_struct import array_bytes

_VOLATILE = "volatile"
_WEAK = "weak"


def load(
    ptr: Any,
    dtype: Any = None,
    *,
    sem: str | None = None,
    scope: str | None = None,
    cop: str | None = None,
) -> Any:
    """The element at `ptr` (PTX ISA 9.7.9.8, "ld"), of `dtype` if `ptr` points to another type.

    `sem` is weak (as without it), relaxed, acquire or volatile, `scope` cta, cluster, gpu or sys;
    `cop` is a cache operator: ca, cg, cs, lu, cv, or nc for what nobody writes.
    """
    trace = in_kernel("load()")
    pointer = _typed(ptr, dtype, "load()")
    if sem == "release":
        raise DSLTypeError("a load releases nothing: its sem is relaxed, acquire or volatile")
    order, scope = _strength(sem, scope)
    made = Load(
        define(trace.bindings),
        memref=pointer.ir_value(),
        index=Int64(0).ir_value(),
        cache=cop,
        volatile=sem == _VOLATILE,
        order=order,
        scope=scope,
        loc=trace.loc(),
    )
    return pointer.dtype.from_value(made.value)


def store(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, cop: str | None = None
) -> None:
    """Write the element at `ptr` (PTX ISA 9.7.9.11, "st"); `sem` may be release, not acquire."""
    trace = in_kernel("store()")
    pointer = _typed(ptr, type(as_numeric(val)), "store()", keep=True)
    if sem == "acquire":
        raise DSLTypeError("a store acquires nothing: its sem is relaxed, release or volatile")
    order, scope = _strength(sem, scope)
    Store(
        define(trace.bindings),
        value=as_element(pointer.dtype, val).ir_value(),
        memref=pointer.ir_value(),
        index=Int64(0).ir_value(),
        cache=cop,
        volatile=sem == _VOLATILE,
        order=order,
        scope=scope,
        loc=trace.loc(),
    )


def _typed(ptr: Any, dtype: Any, what: str, keep: bool = False) -> Pointer:
    pointer: Pointer = pointer_of(ptr, dtype, what)
    return pointer if keep or dtype is None else recast_ptr(pointer, dtype=dtype)


def _strength(sem: str | None, scope: str | None) -> tuple[str | None, str | None]:
    """Order and scope of a strong access; None and None for a weak one."""
    return (None, None) if sem in (None, _WEAK, _VOLATILE) else (sem, scope or "gpu")


def alloc_smem(element_type: Any, size_in_elems: int, alignment: int | None = None) -> Pointer:
    """A pointer to shared memory of its own, for `size_in_elems` elements."""
    if type(size_in_elems) is not int or size_in_elems < 1:
        raise DSLTypeError(f"alloc_smem() takes a static count, not {size_in_elems!r}")
    align = alignment or element_bytes(element_type)
    return _alloc_smem(
        element_type, array_bytes(element_type, size_in_elems), align, "alloc_smem()"
    )
