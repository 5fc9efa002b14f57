"""What cp.async copies are waited for by: PTX ISA 9.7.9.25.3, "cp.async.commit_group" and
"wait_group"; 9.7.13.15, "cp.async.mbarrier.arrive".
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, shared_address


@takes_location
def cp_async_commit_group() -> None:
    """Close the group of asynchronous copies that this thread has issued."""
    emit_op("cp_async_commit_group()", "nvvm.cp.async.commit.group")


@takes_location
def cp_async_wait_group(n: int) -> None:
    """Wait until all but this thread's last `n` groups (a static number) are complete. What other
    threads copied is visible after a barrier.
    """
    if type(n) is not int or n < 0:
        raise DSLTypeError(f"a number of groups is a static integer from 0, not {n!r}")
    emit_op("cp_async_wait_group()", "nvvm.cp.async.wait.group", attributes={"n": f"{n} : i32"})


@takes_location
def cp_async_mbarrier_arrive_noinc(mbar_ptr: Any) -> None:
    """Arrive at an mbarrier when all asynchronous copies of this thread so far are complete; it is
    one of the arrivals that the mbarrier was initialised for.
    """
    what = "cp_async_mbarrier_arrive_noinc()"
    address = shared_address(mbar_ptr, what)
    emit_op(what, "nvvm.cp.async.mbarrier.arrive", [address], attributes={"noinc": "true"})
