"""Bulk asynchronous copies of contiguous memory, and their groups: PTX ISA 9.7.9.25.4 and
9.7.9.27.2, "cp.async.bulk" (sm_90).
"""

from __future__ import annotations

from basedsl import DSLTypeError, Integer
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.tensors.pointer import Pointer


@takes_location
def cp_async_bulk_commit_group() -> None:
    """Close the group of bulk copies (TMA stores too) that this thread has issued since the last
    one.
    """
    emit_op("cp_async_bulk_commit_group()", "nvvm.cp.async.bulk.commit.group")


@takes_location
def cp_async_bulk_wait_group(group: int, *, read: bool = False) -> None:
    """Wait until all but this thread's last `group` groups of bulk copies are complete.

    With `read`, wait only until they have read their source, which may then be overwritten.
    `group` is a static integer from 0 (DSLTypeError otherwise).
    """
    if type(group) is not int or group < 0:
        raise DSLTypeError(f"a number of groups is a static integer from 0, not {group!r}")
    attributes = {"group": f"{group} : i32"} | ({"read": "unit"} if read else {})
    emit_op("cp_async_bulk_wait_group()", "nvvm.cp.async.bulk.wait_group", attributes=attributes)


def bulk_load(
    smem_ptr: Pointer, gmem_ptr: Pointer, nbytes: int | Integer, mbar_ptr: Pointer
) -> None:
    """Copy `nbytes`, a multiple of 16, from global to shared memory; they count at the mbarrier."""
    what = "a bulk load"
    target = shared_address(smem_ptr, what)
    # A block's own shared memory has the same addresses in the cluster's window.
    number = emit_op(what, "llvm.ptrtoint", [target], ["i32"]).result
    cluster = emit_op(what, "llvm.inttoptr", [number], ["!llvm.ptr<7>"]).result
    operands = [cluster, gmem_ptr.llvm_ptr, shared_address(mbar_ptr, what), i32(nbytes)]
    segments = {"operandSegmentSizes": "array<i32: 1, 1, 1, 1, 0, 0>"}
    name = "nvvm.cp.async.bulk.shared.cluster.global"
    emit_op(what, name, operands, attributes=segments)


def bulk_store(gmem_ptr: Pointer, smem_ptr: Pointer, nbytes: int | Integer) -> None:
    """Copy `nbytes`, a multiple of 16, from shared to global memory, in the thread's bulk group."""
    what = "a bulk store"
    operands = [gmem_ptr.llvm_ptr, shared_address(smem_ptr, what), i32(nbytes)]
    segments = {"operandSegmentSizes": "array<i32: 1, 1, 1, 0, 0>"}
    emit_op(what, "nvvm.cp.async.bulk.global.shared.cta", operands, attributes=segments)
