"""Single loads and stores with PTX's memory semantics, and shared memory of the block."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int64, Numeric, as_numeric
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import Load, Store
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.make_tensor import alloc_smem as _alloc_smem
from basedsl_cute.tensors.make_tensor import pointer_of
from basedsl_cute.tensors.pointer import Pointer, as_element, element_bytes, recast_ptr
from basedsl_cute.tensors.smem_struct import array_bytes

_VOLATILE = "volatile"
_WEAK = "weak"


@takes_location
def load(
    ptr: Pointer,
    dtype: type[Numeric] | None = None,
    *,
    sem: str | None = None,
    scope: str | None = None,
    cop: str | None = None,
) -> Any:
    """Return the element at `ptr` (PTX ISA 9.7.9.8, "ld").

    `ptr` is a `Pointer` (or an `!llvm.ptr` of the IR); `dtype` reads it as another type. `sem` is
    "weak" (the default), "relaxed", "acquire" or "volatile"; `scope` of an order is "cta",
    "cluster", "gpu" (the default) or "sys". `cop` is a cache operator: "ca", "cg", "cs", "lu" or
    "cv", or "nc" for memory that nobody writes. Raises DSLTypeError for `sem="release"`.
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


@takes_location
def store(
    ptr: Pointer,
    val: Any,
    *,
    sem: str | None = None,
    scope: str | None = None,
    cop: str | None = None,
) -> None:
    """Write `val`, converted to the element type, to the element at `ptr` (PTX ISA 9.7.9.11,
    "st").

    `sem` is "weak" (the default), "relaxed", "release" or "volatile"; `scope` as for `load`; `cop`
    is a cache operator: "wb", "cg", "cs" or "wt". Raises DSLTypeError for `sem="acquire"`.
    """
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


@takes_location
def alloc_smem(
    element_type: type[Numeric], size_in_elems: int, alignment: int | None = None
) -> Pointer:
    """Allocate shared memory of the block for `size_in_elems` elements of the numeric type
    `element_type`, and return a pointer to the first.

    The size is a static integer from 1 (DSLTypeError otherwise); `alignment` is in bytes, by
    default that of an element. `cute.utils.SmemAllocator` allocates structs and tensors too.
    """
    if type(size_in_elems) is not int or size_in_elems < 1:
        raise DSLTypeError(
            f"alloc_smem() takes a static count, not {size_in_elems!r}",
            hint="take a Python int or a Constexpr argument; dynamic sizes are smem= of the launch",
        )
    align = alignment or element_bytes(element_type)
    return _alloc_smem(
        element_type, array_bytes(element_type, size_in_elems), align, "alloc_smem()"
    )
