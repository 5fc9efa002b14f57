"""Threads waiting for each other: PTX ISA section 9.7.13, "Parallel Synchronization"."""

from __future__ import annotations

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int32
from basedsl_cute.arch.indices import FULL_MASK, in_kernel
from basedsl_cute.dialect import define


def sync_threads() -> None:
    """Wait until all threads of the block are here; shared and global writes are then visible."""
    barrier()


def barrier(barrier_id: int | None = None, number_of_threads: int | None = None) -> None:
    """Wait at a hardware barrier (0 to 15) for `number_of_threads`, a multiple of 32."""
    trace = in_kernel("a barrier")
    if type(barrier_id) is int and not 0 <= barrier_id <= 15:
        raise DSLTypeError(f"there is no barrier {barrier_id}: a block has barriers 0 to 15")
    if type(number_of_threads) is int and (number_of_threads <= 0 or number_of_threads % 32):
        raise DSLTypeError(
            f"a barrier counts whole warps: {number_of_threads} threads are no multiple of 32"
        )
    define(trace.bindings).barrier(barrier_id, number_of_threads, loc=trace.loc())


def sync_warp(mask: int = FULL_MASK) -> None:
    """Wait until the warp's threads in `mask` are here (PTX `bar.warp.sync`)."""
    trace = in_kernel("sync_warp()")
    value = Int32(mask - 2**32 if mask >= 2**31 else mask) if isinstance(mask, int) else mask
    trace.emit(trace.ir.Operation.create, "nvvm.bar.warp.sync", operands=[value.ir_value()])
