"""Groups of bulk asynchronous copies: PTX ISA 9.7.9.27.2, "cp.async.bulk"."""

from __future__ import annotations

from basedsl.errors import DSLTypeError
from basedsl_cute.arch.emit import emit_op


def cp_async_bulk_commit_group() -> None:
    """Close the group of bulk copies that this thread has issued."""
    emit_op("cp_async_bulk_commit_group()", "nvvm.cp.async.bulk.commit.group")


def cp_async_bulk_wait_group(group: int, *, read: bool = False) -> None:
    """Wait until all but the last `group` groups are complete; with `read`, until they have read
    their source, which may then be overwritten.
    """
    if type(group) is not int or group < 0:
        raise DSLTypeError(f"a number of groups is a static integer from 0, not {group!r}")
    attributes = {"group": f"{group} : i32"} | ({"read": "unit"} if read else {})
    emit_op("cp_async_bulk_wait_group()", "nvvm.cp.async.bulk.wait_group", attributes=attributes)
