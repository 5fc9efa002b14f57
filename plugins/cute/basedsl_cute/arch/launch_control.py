"""Cluster launch control: a running cluster takes over the work of one that has not started.

PTX ISA, "clusterlaunchcontrol" (sm_100). A request is asynchronous: it writes 16 bytes to
shared memory, which count at an mbarrier. After one that failed there is nothing more to ask for.
"""

from __future__ import annotations

from typing import Any

from basedsl import Boolean, DSLTypeError, Int32
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, shared_address
from basedsl_cute.dialect import define
from basedsl_cute.dialect.launch_control import LaunchResponse
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.pointer import Pointer

RESPONSE_BYTES = 16


def _response_address(pointer: Any, what: str) -> Any:
    address = shared_address(pointer, what)
    if pointer.alignment < RESPONSE_BYTES:
        raise DSLTypeError(
            f"{what} needs a response aligned to {RESPONSE_BYTES} bytes, got {pointer}",
            hint="cute.struct.Align[cute.struct.MemRange[cute.Int32, 4], 16]",
        )
    return address


@takes_location
def clusterlaunchcontrol_try_cancel(
    response_ptr: Pointer, mbar_ptr: Pointer, multicast: bool = False
) -> None:
    """Request the cancellation of a cluster's launch, by one thread (PTX
    `clusterlaunchcontrol.try_cancel`).

    The response of 16 bytes goes to `response_ptr` and counts at the mbarrier `mbar_ptr`; with
    `multicast` each block of the cluster gets it at the same address, and its mbarrier there counts
    it (sm_100f). Raises DSLTypeError for pointers that are not into shared memory, and a response
    not aligned to 16 bytes.
    """
    what = "clusterlaunchcontrol_try_cancel()"
    operands = [_response_address(response_ptr, what), shared_address(mbar_ptr, what)]
    attributes = {"multicast": "unit"} if multicast else {}
    name = "nvvm.clusterlaunchcontrol.try.cancel"
    emit_op(what, name, operands, attributes=attributes)


@takes_location
def issue_clc_query(mbar_ptr: Pointer, clc_response_ptr: Pointer, multicast: bool = False) -> None:
    """Request the cancellation of a cluster's launch: `clusterlaunchcontrol_try_cancel`, with
    `mbar_ptr` the mbarrier, `clc_response_ptr` the response and `multicast` as there.
    """
    clusterlaunchcontrol_try_cancel(clc_response_ptr, mbar_ptr, multicast)


@takes_location
def clc_response(result_addr: Pointer) -> tuple[Int32, Int32, Int32, Int32]:
    """Return (x, y, z, valid) of the response at `result_addr`: the index of the first block of the
    cancelled cluster, and 1, or 0 if no launch was cancelled. See
    `clusterlaunchcontrol_query_cancel`.
    """
    cancelled, (x, y, z) = clusterlaunchcontrol_query_cancel(result_addr)
    return x, y, z, cancelled.to(Int32)


@takes_location
def clusterlaunchcontrol_query_cancel(
    response_ptr: Pointer,
) -> tuple[Boolean, tuple[Int32, Int32, Int32]]:
    """Return whether a launch was cancelled, and the index (x, y, z) of its first block (PTX
    `clusterlaunchcontrol.query_cancel`).

    `response_ptr` is that of the request, for whose mbarrier the thread has waited. The index means
    nothing if no launch was cancelled. Raises DSLTypeError as `clusterlaunchcontrol_try_cancel`.
    """
    what = "clusterlaunchcontrol_query_cancel()"
    address = _response_address(response_ptr, what)
    trace = in_kernel(what)
    kind = trace.ir.VectorType.get([4], trace.ir.IntegerType.get_signless(32))
    made = trace.emit(LaunchResponse, define(trace.bindings), address=address, type=kind)
    words = [
        Int32.from_value(
            emit_op(
                what, "vector.extract", [made.values], ["i32"],
                {"static_position": f"array<i64: {i}>"},
            ).result
        )
        for i in range(4)
    ]  # fmt: skip
    return words[0] != 0, (words[1], words[2], words[3])
