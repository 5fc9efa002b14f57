"""Waiting for cp.async copies: PTX ISA 9.7.9.25.3, "cp.async.commit_group" and "wait_group"; and
9.7.13.15, "cp.async.mbarrier.arrive". All need sm_80.
"""

from __future__ import annotations

from basedsl import DSLTypeError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, shared_address
from basedsl_cute.tensors.pointer import Pointer


@takes_location
def cp_async_commit_group() -> None:
    """Close the group of cp.async copies that this thread has issued since the last one."""
    emit_op("cp_async_commit_group()", "nvvm.cp.async.commit.group")


@takes_location
def cp_async_wait_group(n: int) -> None:
    """Wait until all but this thread's last `n` groups are complete.

    `n` is a static integer from 0 (DSLTypeError otherwise). Copies that other threads issued are
    visible after a barrier.
    """
    if type(n) is not int or n < 0:
        raise DSLTypeError(f"a number of groups is a static integer from 0, not {n!r}")
    emit_op("cp_async_wait_group()", "nvvm.cp.async.wait.group", attributes={"n": f"{n} : i32"})


@takes_location
def cp_async_mbarrier_arrive_noinc(mbar_ptr: Pointer) -> None:
    """Arrive at an mbarrier when all cp.async copies that this thread has issued so far are
    complete.

    The arrival is one of those that the mbarrier was initialised for. `mbar_ptr` points into
    shared memory.
    """
    what = "cp_async_mbarrier_arrive_noinc()"
    address = shared_address(mbar_ptr, what)
    emit_op(what, "nvvm.cp.async.mbarrier.arrive", [address], attributes={"noinc": "true"})
