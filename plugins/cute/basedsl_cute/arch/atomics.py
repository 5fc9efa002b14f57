"""Atomic operations on memory: PTX ISA section 9.7.13, "atom".

`sem` is relaxed, acquire, release or acq_rel; `scope` cta, cluster, gpu or sys. All give what was
in memory before.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Float32, Int32, Int64, Uint32, as_numeric
from basedsl_cute.arch.indices import in_kernel
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import AtomicCAS, AtomicRMW
from basedsl_cute.tensors.make_tensor import pointer_of
from basedsl_cute.tensors.pointer import as_element, recast_ptr


def _update(
    what: str, kind: str, ptr: Any, val: Any, sem: str, scope: str, unsigned: str | None = None
) -> Any:
    trace = in_kernel(what)
    pointer = pointer_of(ptr, type(as_numeric(val)), what)
    dtype = pointer.dtype
    number = as_element(dtype, val)
    if dtype.is_float and kind == "add":
        kind = "fadd"
    if unsigned is not None and dtype.is_integer and not dtype.signed:
        kind = unsigned
    atomic = AtomicRMW(
        define(trace.bindings),
        value=number.ir_value(),
        memref=pointer.ir_value(),
        index=Int64(0).ir_value(),
        kind=kind,
        order=sem,
        scope=scope,
        loc=trace.loc(),
    )
    return dtype.from_value(atomic.old)


def atomic_add(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Add."""
    return _update("atomic_add()", "add", ptr, val, sem, scope)


def atomic_max(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Keep the larger integer."""
    return _update("atomic_max()", "max", ptr, val, sem, scope, unsigned="umax")


def atomic_min(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Keep the smaller integer."""
    return _update("atomic_min()", "min", ptr, val, sem, scope, unsigned="umin")


def atomic_and(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """And of the bits of integers."""
    return _update("atomic_and()", "and", ptr, val, sem, scope)


def atomic_or(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Or of the bits of integers."""
    return _update("atomic_or()", "or", ptr, val, sem, scope)


def atomic_xor(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Exclusive or of the bits of integers."""
    return _update("atomic_xor()", "xor", ptr, val, sem, scope)


def atomic_exch(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace."""
    return _update("atomic_exch()", "xchg", ptr, val, sem, scope)


def atomic_cas(ptr: Any, cmp: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace by `val` if `cmp` is there."""
    what = "atomic_cas()"
    trace = in_kernel(what)
    pointer = pointer_of(ptr, type(as_numeric(val)), what)
    atomic = AtomicCAS(
        define(trace.bindings),
        expected=as_element(pointer.dtype, cmp).ir_value(),
        value=as_element(pointer.dtype, val).ir_value(),
        memref=pointer.ir_value(),
        index=Int64(0).ir_value(),
        order=sem,
        scope=scope,
        loc=trace.loc(),
    )
    return pointer.dtype.from_value(atomic.old)


def atomic_fmax(
    ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu", sign_bit: bool = True
) -> Any:
    """Keep the larger Float32. `sign_bit=False` promises that no number is negative.

    NaNs are not ordered: do not have any.
    """
    return _float_extreme("atomic_fmax()", ("max", "umin"), ptr, val, sem, scope, sign_bit)


def atomic_fmin(
    ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu", sign_bit: bool = True
) -> Any:
    """Keep the smaller Float32; otherwise as `atomic_fmax`."""
    return _float_extreme("atomic_fmin()", ("min", "umax"), ptr, val, sem, scope, sign_bit)


def _float_extreme(
    what: str, kinds: tuple[str, str], ptr: Any, val: Any, sem: str, scope: str, sign_bit: bool
) -> Any:
    """Floats by integers: bits of numbers that are not negative are ordered as these, those of
    negative ones as unsigned integers the other way round. So one comparison serves for a `val`
    that is not negative, and another one for a negative `val`, whatever is in memory.
    """
    trace = in_kernel(what)
    pointer = pointer_of(ptr, Float32, what)
    if pointer.dtype is not Float32:
        raise DSLTypeError(f"{what} takes a pointer to Float32, not to {pointer.dtype.__name__}")
    ir, create = trace.ir, trace.ir.Operation.create
    i32 = ir.IntegerType.get_signless(32)
    number = as_element(Float32, val)
    bits = Int32.from_value(trace.value("arith.bitcast", i32, number.ir_value()))
    place = recast_ptr(pointer, dtype=Int32)
    if not sign_bit:
        old = _update(what, kinds[0], place, bits, sem, scope)
    else:
        positive = (bits >= 0).ir_value()
        branch = trace.emit(create, "scf.if", results=[i32], operands=[positive], regions=2)
        for region, kind in zip(branch.regions, kinds, strict=True):
            with trace.insertion(region.blocks.append()):
                found = _update(what, kind, place, bits, sem, scope)
                create("scf.yield", operands=[found.ir_value()], loc=trace.loc())
        old = Uint32.from_value(branch.results[0])
    f32 = ir.F32Type.get()
    return Float32.from_value(trace.value("arith.bitcast", f32, old.ir_value()))
