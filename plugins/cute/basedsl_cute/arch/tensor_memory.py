"""Tensor memory of sm_100 and its family: its allocation (PTX ISA, "Tensor Memory
Allocation and Management"), waits and fences of tcgen05 ("Memory Consistency Model").

One warp allocates columns and the same frees them, all its lanes together. Names that CuTe's DSL
has take `is_two_cta=`, for a pair of blocks.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, Integer
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.hardware.targets import target_of
from basedsl_cute.hardware.tensor_memory import MIN_TMEM_COLUMNS
from basedsl_cute.tensors.make_tensor import make_ptr
from basedsl_cute.tensors.pointer import Pointer, recast_ptr


def _group(is_two_cta: bool) -> dict[str, str]:
    return {"group": f"#nvvm.cta_group<cta_{2 if is_two_cta else 1}>"}


@takes_location
def get_max_tmem_alloc_cols(arch: str = "sm_100") -> int:
    """Return the columns of tensor memory that an SM of `arch` has, such as 512 for "sm_100".

    Raises DSLTypeError for an architecture without tensor memory.
    """
    columns = target_of(arch).tmem_columns
    if not columns:
        raise DSLTypeError(f"{arch} has no tensor memory; those of sm_100 and sm_110 have")
    return columns


@takes_location
def get_min_tmem_alloc_cols(arch: str = "sm_100") -> int:
    """Return the fewest columns that an allocation has on `arch`, such as 32 for "sm_100".

    Raises DSLTypeError as `get_max_tmem_alloc_cols`.
    """
    get_max_tmem_alloc_cols(arch)
    return MIN_TMEM_COLUMNS


def _columns(num_columns: Any, what: str) -> Any:
    if type(num_columns) is int:
        most, least = get_max_tmem_alloc_cols(), MIN_TMEM_COLUMNS
        if not least <= num_columns <= most or num_columns & (num_columns - 1):
            raise DSLTypeError(
                f"{what}: {num_columns} columns are no power of two from {least} to {most}",
                hint="utils.get_num_tmem_alloc_cols(tensors) rounds up",
            )
    return i32(num_columns)


@takes_location
def alloc_tmem(
    num_columns: int | Integer, smem_ptr_to_write_address: Pointer, is_two_cta: bool = False
) -> None:
    """Allocate columns of tensor memory and write their address to shared memory.

    PTX `tcgen05.alloc`, by a whole warp. `num_columns` is a power of two from 32 to 512. It waits
    until so many columns are free. `smem_ptr_to_write_address` points to an Int32 in shared memory
    (DSLTypeError otherwise, as for another static number); `retrieve_tmem_ptr` reads it. With
    `is_two_cta`, a warp of each block of a pair takes part, and both blocks get the columns.
    """
    what = "alloc_tmem()"
    address = shared_address(smem_ptr_to_write_address, what)
    if smem_ptr_to_write_address.dtype.width != 32:
        raise DSLTypeError(f"{what} writes an Int32, got {smem_ptr_to_write_address}")
    operands = [address, _columns(num_columns, what)]
    emit_op(what, "nvvm.tcgen05.alloc", operands, attributes=_group(is_two_cta))


@takes_location
def retrieve_tmem_ptr(dtype: Any, alignment: int, ptr_to_buffer_holding_addr: Pointer) -> Pointer:
    """Return the address that `alloc_tmem` wrote, as a pointer to elements of `dtype`.

    `ptr_to_buffer_holding_addr` points to the Int32 in shared memory that it was written to; a
    barrier comes between the two. `alignment` is a promise in bytes.
    """
    what = "retrieve_tmem_ptr()"
    shared_address(ptr_to_buffer_holding_addr, what)
    holder = recast_ptr(ptr_to_buffer_holding_addr, dtype=Int32)
    return make_ptr(dtype, holder.load(), "tmem", assumed_align=alignment)


def _tensor_address(pointer: Any, what: str) -> Any:
    if not isinstance(pointer, Pointer) or pointer.space != "tmem":
        raise DSLTypeError(f"{what} takes a pointer into tensor memory, got {pointer}")
    return pointer.llvm_ptr


@takes_location
def dealloc_tmem(tmem_ptr: Pointer, num_columns: int | Integer, is_two_cta: bool = False) -> None:
    """Free columns that `alloc_tmem` gave, all of them (PTX `tcgen05.dealloc`, by a whole warp).

    `tmem_ptr` is their address, `num_columns` their number and `is_two_cta` that of the allocation.
    A kernel frees what it has allocated before it ends. Raises DSLTypeError as `alloc_tmem`.
    """
    what = "dealloc_tmem()"
    operands = [_tensor_address(tmem_ptr, what), _columns(num_columns, what)]
    emit_op(what, "nvvm.tcgen05.dealloc", operands, attributes=_group(is_two_cta))


@takes_location
def relinquish_tmem_alloc_permit(is_two_cta: bool = False) -> None:
    """Give up the right to allocate more tensor memory, which other blocks of the SM wait for.

    PTX `tcgen05.relinquish_alloc_permit`, by a whole warp; `is_two_cta` is that of the allocations.
    """
    what = "relinquish_tmem_alloc_permit()"
    emit_op(what, "nvvm.tcgen05.relinquish_alloc_permit", attributes=_group(is_two_cta))


@takes_location
def fence_view_async_tmem_load() -> None:
    """Wait until this thread's loads from tensor memory are complete (PTX `tcgen05.wait::ld`).

    `cute.copy` waits for its own loads; this comes before others may write what was read.
    """
    kind = {"kind": "#nvvm.tcgen05_wait<load>"}
    emit_op("fence_view_async_tmem_load()", "nvvm.tcgen05.wait", attributes=kind)


@takes_location
def fence_view_async_tmem_store() -> None:
    """Wait until this thread's stores to tensor memory are complete (PTX `tcgen05.wait::st`).

    It comes before others, also the tensor core, may read what was stored.
    """
    kind = {"kind": "#nvvm.tcgen05_wait<store>"}
    emit_op("fence_view_async_tmem_store()", "nvvm.tcgen05.wait", attributes=kind)


@takes_location
def tcgen05_before_thread_sync() -> None:
    """Order this thread's tcgen05 instructions before a barrier that follows.

    PTX `tcgen05.fence::before_thread_sync`.
    """
    kind = {"kind": "#nvvm.tcgen05_fence<before>"}
    emit_op("tcgen05_before_thread_sync()", "nvvm.tcgen05.fence", attributes=kind)


@takes_location
def tcgen05_after_thread_sync() -> None:
    """Order this thread's later tcgen05 instructions behind a barrier that it has passed.

    PTX `tcgen05.fence::after_thread_sync`.
    """
    kind = {"kind": "#nvvm.tcgen05_fence<after>"}
    emit_op("tcgen05_after_thread_sync()", "nvvm.tcgen05.fence", attributes=kind)
