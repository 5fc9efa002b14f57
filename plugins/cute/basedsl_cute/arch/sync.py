"""Threads waiting for each other: PTX ISA section 9.7.13, "Parallel Synchronization"."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int32
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.arch.indices import FULL_MASK, in_kernel
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import Barrier
from basedsl_cute.hardware.targets import WARP_SIZE


def sync_threads() -> None:
    """Wait until all threads of the block are here; shared and global writes are then visible."""
    barrier()


def barrier(barrier_id: Any = None, number_of_threads: Any = None) -> None:
    """Wait at a hardware barrier (0 to 15) for `number_of_threads`, a multiple of 32. Both may be
    dynamic, but must be the same in all threads of a warp.
    """
    trace = in_kernel("a barrier")
    _check(barrier_id, number_of_threads)
    given = (barrier_id, number_of_threads)
    if all(n is None or type(n) is int for n in given):
        Barrier(define(trace.bindings), id=barrier_id, count=number_of_threads, loc=trace.loc())
        return
    id_ = 0 if barrier_id is None else barrier_id
    operands = [i32(n) for n in (id_, number_of_threads) if n is not None]
    segments = {"operandSegmentSizes": f"array<i32: 1, {len(operands) - 1}, 0>"}
    emit_op("a barrier", "nvvm.barrier", operands, attributes=segments)


def barrier_arrive(barrier_id: Any, number_of_threads: Any) -> None:
    """Count as arrived at a hardware barrier and go on; others `barrier()` there."""
    what = "barrier_arrive()"
    in_kernel(what)
    _check(barrier_id, number_of_threads)
    emit_op(what, "nvvm.barrier.arrive", [i32(barrier_id), i32(number_of_threads)])


def _check(barrier_id: Any, number_of_threads: Any) -> None:
    if type(barrier_id) is int and not 0 <= barrier_id <= 15:
        raise DSLTypeError(f"there is no barrier {barrier_id}: a block has barriers 0 to 15")
    if type(number_of_threads) is int and (number_of_threads <= 0 or number_of_threads % WARP_SIZE):
        raise DSLTypeError(
            f"a barrier counts whole warps: {number_of_threads} threads are no multiple of "
            f"{WARP_SIZE}"
        )


def sync_warp(mask: int = FULL_MASK) -> None:
    """Wait until the warp's threads in `mask` are here (PTX `bar.warp.sync`)."""
    trace = in_kernel("sync_warp()")
    value = Int32(mask - 2**32 if mask >= 2**31 else mask) if isinstance(mask, int) else mask
    trace.emit(trace.ir.Operation.create, "nvvm.bar.warp.sync", operands=[value.ir_value()])
