"""`utils.distributed`: flags and multicast memory of several GPUs, an instruction at a time.

A multicast address stands for the same place in the memory of every rank (PTX ISA, "multimem");
such memory comes from PyTorch's symmetric memory or NVSHMEM. `basedsl_cute.distributed` has
symmetric tensors and signals with time limits; these functions wait without limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import (
    BFloat16,
    Boolean,
    DSLTypeError,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int32,
    Numeric,
    Uint32,
)
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.tensors.pointer import Pointer

__all__ = [
    "multimem_ld_reduce",
    "multimem_ld_reduce_4xf32",
    "multimem_red_add1",
    "multimem_st",
    "multimem_st_4xb32",
    "red_add1",
    "spin_lock_atom_cas_acquire_wait",
    "spin_lock_atom_cas_relaxed_wait",
    "spin_lock_ld_lt_relaxed_wait",
]

_WORDS = 4  # of 32 bits that one instruction moves
# What adds elements: the operation with the type of its sums, and the type of a register.
_SUMS: dict[Any, tuple[str, str]] = {
    Float32: ("add", "f32"),
    Float16: ("add.acc::f32", "f16x2"),
    BFloat16: ("add.acc::f32", "bf16x2"),
    Float8E4M3FN: ("add.acc::f16", "e4m3x4"),
    Float8E5M2: ("add.acc::f16", "e5m2x4"),
}
_SCOPES = ("gpu", "sys")
_ORDERS = ("relaxed", "release")


@takes_location
def multimem_ld_reduce(
    ptr: Pointer, dtype: type[Numeric] = Float32, num_elements: int | None = None
) -> tuple[Any, ...]:
    """Return the sums over all ranks of the 16 bytes at a multicast address (PTX
    `multimem.ld_reduce.add`, sm_90).

    `dtype` is Float32, Float16, BFloat16 (summed in Float32), Float8E4M3FN or Float8E5M2 (in
    Float16), `num_elements` the elements in 16 bytes. The result is four registers: Float32, or
    Uint32 that hold several elements each. Raises DSLTypeError for other types and numbers.
    """
    if dtype not in _SUMS:
        known = ", ".join(x.__name__ for x in _SUMS)
        raise DSLTypeError(
            f"multimem_ld_reduce() sums {known}, not {getattr(dtype, '__name__', dtype)}"
        )
    if num_elements not in (None, 128 // dtype.width):
        raise DSLTypeError(
            f"multimem_ld_reduce() sums 16 bytes, {128 // dtype.width} of {dtype.__name__}, not "
            f"{num_elements}"
        )
    operation, kind = _SUMS[dtype]
    register = Float32 if dtype is Float32 else Uint32
    found: tuple[Any, ...] = arch.inline_ptx(
        f"multimem.ld_reduce.relaxed.sys.global.{operation}.v4.{kind} {{$0, $1, $2, $3}}, [$4];",
        (ptr,),
        (register,) * _WORDS,
    )
    return found


@takes_location
def multimem_ld_reduce_4xf32(ptr: Pointer) -> tuple[Any, ...]:
    """Return the sums over all ranks of four Float32 at a multicast address; see
    `multimem_ld_reduce`.
    """
    return multimem_ld_reduce(ptr, Float32)


@takes_location
def multimem_st(ptr: Pointer, *registers: Any) -> None:
    """Store four registers, Float32 or words of 32 bits, at a multicast address: in the memory of
    every rank (PTX `multimem.st`, sm_90).
    """
    values = _registers(registers)
    if len(values) != _WORDS:
        raise DSLTypeError(f"multimem_st() stores four registers, not {len(values)}")
    arch.inline_ptx("multimem.st.relaxed.sys.global.v4.f32 [$0], {$1, $2, $3, $4};", (ptr, *values))


@takes_location
def multimem_st_4xb32(ptr: Pointer, x: Any, y: Any, z: Any, w: Any) -> None:
    """Store four words of 32 bits at a multicast address; see `multimem_st`."""
    multimem_st(ptr, x, y, z, w)


def _registers(values: Sequence[Any]) -> list[Any]:
    if len(values) == 1 and isinstance(values[0], list | tuple):
        values = values[0]
    return [_as_float(x) for x in values]


def _as_float(x: Any) -> Any:
    """Return the bits of a number of 32 bits as a Float32: the register that PTX asks for."""
    if type(x) is float or isinstance(x, Float32):
        return Float32(x)
    return arch.inline_ptx("mov.b32 $0, $1;", (Int32(x) if type(x) is int else x,), Float32,
                           has_side_effects=False)  # fmt: skip


@takes_location
def multimem_red_add1(lock_ptr: Pointer, *, scope: str = "gpu", order: str = "release") -> None:
    """Add 1 to the Int32 at a multicast address: to the flag of every rank (PTX `multimem.red`,
    sm_90).

    `scope` is "gpu" or "sys", `order` "relaxed" or "release": what the thread did before is over
    for whoever acquires the flag. Raises DSLTypeError for others.
    """
    _check_scope_and_order(scope, order)
    arch.inline_ptx(f"multimem.red.{order}.{scope}.global.add.s32 [$0], $1;", (lock_ptr, Int32(1)))


@takes_location
def red_add1(lock_ptr: Pointer, *, scope: str = "gpu", order: str = "release") -> None:
    """Add 1 to the Int32 at `lock_ptr`, in this GPU's memory or a peer's; see
    `multimem_red_add1`.
    """
    _check_scope_and_order(scope, order)
    arch.atomic_add(lock_ptr, Int32(1), sem=order, scope=scope)


def _check_scope_and_order(scope: str, order: str) -> None:
    for name, value, known in (("scope", scope, _SCOPES), ("order", order, _ORDERS)):
        if value not in known:
            raise DSLTypeError(f"{name} is {' or '.join(known)}, not {value!r}")


@takes_location
def spin_lock_atom_cas_acquire_wait(
    lock_ptr: Pointer, *, expected_val: Any, reset_val: Any, scope: str = "gpu"
) -> None:
    """Wait until the Int32 at `lock_ptr` is `expected_val`, and set it to `reset_val`, for one
    thread (PTX `atom.acquire.cas`).

    What the thread that set it did before its release is then visible to this one. `scope` is "gpu"
    or "sys".
    """
    _check_scope_and_order(scope, "relaxed")
    _exchange(lock_ptr, expected_val, reset_val, "acquire", scope)


@takes_location
def spin_lock_atom_cas_relaxed_wait(
    lock_ptr: Pointer, *, expected_val: Any, reset_val: Any, scope: str = "gpu"
) -> None:
    """Wait until the Int32 at `lock_ptr` is `expected_val`, and set it to `reset_val`, for one
    thread, without an order for other memory; see `spin_lock_atom_cas_acquire_wait`.
    """
    _check_scope_and_order(scope, "relaxed")
    _exchange(lock_ptr, expected_val, reset_val, "relaxed", scope)


@takes_location
def spin_lock_ld_lt_relaxed_wait(
    lock_ptr: Pointer, *, expected_val: Any, scope: str = "gpu"
) -> None:
    """Wait while the Int32 at `lock_ptr` is less than `expected_val`, for one thread (PTX
    `ld.relaxed`). `scope` is "gpu" or "sys".
    """
    _check_scope_and_order(scope, "relaxed")
    _at_least(lock_ptr, Int32(expected_val), scope)


@CUTE.jit
def _exchange(pointer: Any, expected: Any, new: Any, order: str, scope: str) -> None:
    waits = Boolean(True)
    while waits:
        seen = arch.atomic_cas(pointer, Int32(expected), Int32(new), sem=order, scope=scope)
        waits = seen != expected


@CUTE.jit
def _at_least(pointer: Any, expected: Any, scope: str) -> None:
    waits = Boolean(True)
    while waits:
        waits = arch.load(pointer, sem="relaxed", scope=scope) < expected
