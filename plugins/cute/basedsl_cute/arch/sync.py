"""Barriers of the block and of warps: PTX ISA section 9.7.13, "Parallel Synchronization"."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, Integer
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.arch.indices import FULL_MASK
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import Barrier
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.tensors.kernel_scope import in_kernel


@takes_location
def sync_threads() -> None:
    """Wait until all threads of the block have arrived (PTX `barrier.cta.sync 0`, CUDA
    `__syncthreads`).

    Their earlier writes to shared and global memory are then visible to each other.
    """
    barrier()


@takes_location
def barrier(
    barrier_id: int | Integer | None = None, number_of_threads: int | Integer | None = None
) -> None:
    """Wait at a hardware barrier of the block until `number_of_threads` threads have arrived.

    `barrier_id` is 0 to 15, by default 0; `number_of_threads` a multiple of 32, by default the
    block. Both may be dynamic, but must be the same in all threads of a warp. Raises DSLTypeError
    for static numbers out of range.
    """
    trace = in_kernel("a barrier")
    _check_barrier(barrier_id, number_of_threads)
    given: tuple[Any, Any] = (barrier_id, number_of_threads)
    if all(n is None or type(n) is int for n in given):
        Barrier(define(trace.bindings), id=given[0], count=given[1], loc=trace.loc())
        return
    id_ = 0 if barrier_id is None else barrier_id
    operands = [i32(n) for n in (id_, number_of_threads) if n is not None]
    segments = {"operandSegmentSizes": f"array<i32: 1, {len(operands) - 1}, 0>"}
    emit_op("a barrier", "nvvm.barrier", operands, attributes=segments)


@takes_location
def barrier_arrive(barrier_id: int | Integer, number_of_threads: int | Integer) -> None:
    """Arrive at a hardware barrier and go on (PTX `barrier.cta.arrive`); other threads `barrier()`
    there.

    `barrier_id` and `number_of_threads` are those of `barrier`: the threads that arrive count.
    """
    what = "barrier_arrive()"
    in_kernel(what)
    _check_barrier(barrier_id, number_of_threads)
    emit_op(what, "nvvm.barrier.arrive", [i32(barrier_id), i32(number_of_threads)])


def _check_barrier(barrier_id: Any, number_of_threads: Any) -> None:
    if type(barrier_id) is int and not 0 <= barrier_id <= 15:
        raise DSLTypeError(
            f"there is no barrier {barrier_id}: a block has barriers 0 to 15",
            hint="barrier() is of the whole block; of a part: barrier(1, number_of_threads=64)",
        )
    if type(number_of_threads) is int and (number_of_threads <= 0 or number_of_threads % WARP_SIZE):
        raise DSLTypeError(
            f"a barrier counts whole warps: {number_of_threads} threads are no multiple of "
            f"{WARP_SIZE}"
        )


@takes_location
def sync_warp(mask: int | Integer = FULL_MASK) -> None:
    """Wait until the warp's threads in `mask` (bit i is lane i) have arrived (PTX
    `bar.warp.sync`).

    Their earlier writes to memory are then visible to each other.
    """
    trace = in_kernel("sync_warp()")
    value = Int32(mask - 2**32 if mask >= 2**31 else mask) if isinstance(mask, int) else mask
    trace.emit(trace.ir.Operation.create, "nvvm.bar.warp.sync", operands=[value.ir_value()])
