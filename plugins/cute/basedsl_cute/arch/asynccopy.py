"""Groups of cp.async copies: PTX ISA 9.7.9.25.3, "cp.async.commit_group" and "wait_group"."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute.arch.emit import emit_op


def cp_async_commit_group(*, loc: Any = None, ip: Any = None) -> None:
    """Close the group of asynchronous copies that this thread has issued."""
    emit_op("cp_async_commit_group()", "nvvm.cp.async.commit.group")


def cp_async_wait_group(n: int, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until all but this thread's last `n` groups (a static number) are complete. What other
    threads copied is visible after a barrier.
    """
    if type(n) is not int or n < 0:
        raise DSLTypeError(f"a number of groups is a static integer from 0, not {n!r}")
    emit_op("cp_async_wait_group()", "nvvm.cp.async.wait.group", attributes={"n": f"{n} : i32"})
