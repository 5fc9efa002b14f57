"""Atomic operations on memory: PTX ISA section 9.7.13, "atom".

Each function reads the number at a pointer, combines it with a value, and writes the result back,
with no access of another thread in between. It returns the number that was there before. The
parameters that all of them take:

- `ptr`: a `Pointer` into global or shared memory (also of another block of the cluster), or an
  `!llvm.ptr` of the IR, which is taken to point to the type of the value.
- `val`: a number, converted to the pointer's element type.
- `sem`: the memory order, "relaxed", "acquire", "release" or "acq_rel".
- `scope`: the threads among which the operation is atomic and ordered: "cta" (the block),
  "cluster", "gpu" or "sys" (the host too).

They raise DSLError on the host and DSLTypeError for another pointer, value, `sem` or `scope`.
"""

from __future__ import annotations

from typing import Any

from basedsl import (
    BFloat16,
    DSLTypeError,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
    Uint32,
    Uint64,
    as_numeric,
)
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import AtomicCAS, AtomicRMW
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.make_tensor import pointer_of
from basedsl_cute.tensors.pointer import Pointer, as_element, recast_ptr
from basedsl_cute.tensors.tensor_ssa import TensorSSA
from basedsl_cute.tensors.vector_ops import to_elements


def _update(
    what: str, kind: str, ptr: Any, val: Any, sem: str, scope: str, unsigned: str | None = None
) -> Any:
    """Emit `cute.atomic_rmw` of `kind`; `unsigned` is the kind for unsigned integers, if it
    differs.
    """
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


@takes_location
def atomic_add(ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Add `val` to the number at `ptr` and return the number that was there before (PTX
    `atom.add`).

    Integers of 32 or 64 bits wrap around; floats are Float16, BFloat16, Float32 or Float64. For
    `sem` and `scope` see the module `cute.arch.atomics`.

    >>> @cute.kernel
    ... def count_threads(total: cute.Tensor):
    ...     cute.arch.atomic_add(total.iterator, 1)
    >>> @cute.jit
    ... def launch(total: cute.Tensor):
    ...     count_threads(total).launch(grid=4, block=32)
    >>> total = np.zeros(1, np.int32)
    >>> launch(total)
    >>> print(total)
    [128]
    """
    return _update("atomic_add()", "add", ptr, val, sem, scope)


@takes_location
def atomic_max(ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace the integer at `ptr` by `val` if `val` is larger; return the number that was there
    before.

    PTX `atom.max` of a 32- or 64-bit integer, signed or unsigned by the pointer's element type.
    For Float32 there is `atomic_fmax`; for `sem` and `scope` see the module `cute.arch.atomics`.
    """
    return _update("atomic_max()", "max", ptr, val, sem, scope, unsigned="umax")


@takes_location
def atomic_min(ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace the integer at `ptr` by `val` if `val` is smaller; return the number that was there
    before.

    PTX `atom.min` of a 32- or 64-bit integer, signed or unsigned by the pointer's element type.
    For Float32 there is `atomic_fmin`; for `sem` and `scope` see the module `cute.arch.atomics`.
    """
    return _update("atomic_min()", "min", ptr, val, sem, scope, unsigned="umin")


@takes_location
def atomic_and(ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace the integer at `ptr` by its bitwise AND with `val`; return the one that was there
    before.

    PTX `atom.and` of 32 or 64 bits; for `sem` and `scope` see the module `cute.arch.atomics`.
    """
    return _update("atomic_and()", "and", ptr, val, sem, scope)


@takes_location
def atomic_or(ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace the integer at `ptr` by its bitwise OR with `val`; return the one that was there
    before.

    PTX `atom.or` of 32 or 64 bits; for `sem` and `scope` see the module `cute.arch.atomics`.
    """
    return _update("atomic_or()", "or", ptr, val, sem, scope)


@takes_location
def atomic_xor(ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace the integer at `ptr` by its bitwise XOR with `val`; return the one that was there
    before.

    PTX `atom.xor` of 32 or 64 bits; for `sem` and `scope` see the module `cute.arch.atomics`.
    """
    return _update("atomic_xor()", "xor", ptr, val, sem, scope)


_REDUCTIONS = {"min": "umin", "max": "umax", "add": None, "and": None, "or": None, "xor": None}
_PTX_TYPES: dict[str, type[Numeric]] = {
    "f16": Float16, "bf16": BFloat16, "f32": Float32, "f64": Float64, "s32": Int32, "u32": Uint32,
    "b32": Uint32, "s64": Int64, "u64": Uint64, "b64": Uint64,
}  # fmt: skip


@takes_location
def red(
    ptr: Pointer,
    val: Any,
    *,
    op: str,
    dtype: type[Numeric] | str | None = None,
    sem: str = "relaxed",
    scope: str = "gpu",
) -> None:
    """Combine `val` into the number at `ptr`, without a result (PTX `red`).

    `op` is "add", "min", "max", "and", "or" or "xor"; `dtype`, a numeric type or PTX's name of one,
    is what is combined, by default the pointer's type. Each element of a vector (`TensorSSA`) goes
    to its own place, from `ptr` on. For `sem` and `scope` see the module `cute.arch.atomics`.
    """
    what = "red()"
    if op not in _REDUCTIONS:
        raise DSLTypeError(f"{what} has no {op!r}", hint=f"one of {', '.join(_REDUCTIONS)}")
    kind: Any = _PTX_TYPES.get(dtype) if isinstance(dtype, str) else dtype
    if kind is None and dtype is not None:
        raise DSLTypeError(f"{what} has no type {dtype!r}", hint=f"one of {', '.join(_PTX_TYPES)}")
    if isinstance(val, TensorSSA):
        kind, val = kind or val.dtype, val.to(kind or val.dtype).value
    if hasattr(val, "type") and kind is not None:  # of the IR
        numbers = [kind(x) for x in (to_elements(val) if hasattr(val.type, "shape") else [val])]
    else:
        numbers = [as_numeric(val)]
    place = pointer_of(ptr, kind or type(numbers[0]), what)
    if kind is not None:
        place = recast_ptr(place, dtype=kind)
    for i, number in enumerate(numbers):
        _update(what, op, place + i, number, sem, scope, unsigned=_REDUCTIONS[op])


@takes_location
def atomic_exch(ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu") -> Any:
    """Replace the number at `ptr` by `val` and return the number that was there before.

    PTX `atom.exch` of 32 or 64 bits; for `sem` and `scope` see the module `cute.arch.atomics`.
    """
    return _update("atomic_exch()", "xchg", ptr, val, sem, scope)


@takes_location
def atomic_cas(
    ptr: Pointer, cmp: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu"
) -> Any:
    """Replace the number at `ptr` by `val` if it equals `cmp`; return the number that was there
    before.

    PTX `atom.cas` of 16, 32 or 64 bits: the replacement happened if the result equals `cmp`. `cmp`
    and `val` are converted to the pointer's element type; for `sem` and `scope` see the module
    `cute.arch.atomics`.
    """
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


@takes_location
def atomic_fmax(
    ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu", sign_bit: bool = True
) -> Any:
    """Replace the Float32 at `ptr` by `val` if `val` is larger; return the number that was there
    before.

    Integer atomics compute it, as PTX has no maximum of floats. `sign_bit=False` promises that
    neither number is negative, which saves a branch. NaNs are not ordered: neither number may be
    one. Raises DSLTypeError unless `ptr` points to Float32; for `sem` and `scope` see the module
    `cute.arch.atomics`.
    """
    return _float_extreme("atomic_fmax()", ("max", "umin"), ptr, val, sem, scope, sign_bit)


@takes_location
def atomic_fmin(
    ptr: Pointer, val: Any, *, sem: str = "relaxed", scope: str = "gpu", sign_bit: bool = True
) -> Any:
    """Replace the Float32 at `ptr` by `val` if `val` is smaller; return the number that was there
    before.

    For `sem`, `scope`, `sign_bit`, NaNs and errors see `atomic_fmax`.
    """
    return _float_extreme("atomic_fmin()", ("min", "umax"), ptr, val, sem, scope, sign_bit)


def _float_extreme(
    what: str, kinds: tuple[str, str], ptr: Any, val: Any, sem: str, scope: str, sign_bit: bool
) -> Any:
    """Compute an extreme of floats by integer atomics.

    The bits of numbers that are not negative are ordered as these integers, those of negative ones
    as unsigned integers the other way round. So one comparison serves for a `val` that is not
    negative, and another one for a negative `val`, whatever number is in memory.
    """
    trace = in_kernel(what)
    pointer = pointer_of(ptr, Float32, what)
    if pointer.dtype is not Float32:
        raise DSLTypeError(f"{what} takes a pointer to Float32, not to {pointer.dtype.__name__}")
    ir, create = trace.ir, trace.ir.Operation.create
    i32 = ir.IntegerType.get_signless(32)
    number = as_element(Float32, val)
    bits = Int32.from_value(trace.emit_op("arith.bitcast", i32, number.ir_value()))
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
    return Float32.from_value(trace.emit_op("arith.bitcast", f32, old.ir_value()))
