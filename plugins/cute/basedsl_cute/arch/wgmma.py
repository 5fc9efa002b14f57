"""The order of warpgroup matrix instructions: PTX ISA 9.7.15.7, "wgmma.fence" and the groups."""

from __future__ import annotations

from basedsl.errors import DSLTypeError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op


@takes_location
def wgmma_fence() -> None:
    """Order this warpgroup's register accesses before the wgmma that follow."""
    emit_op("warpgroup.fence()", "nvvm.wgmma.fence.aligned")


@takes_location
def wgmma_commit_group() -> None:
    """Close the group of wgmma issued so far."""
    emit_op("warpgroup.commit_group()", "nvvm.wgmma.commit.group.sync.aligned")


@takes_location
def wgmma_wait_group(group: int) -> None:
    """Wait until all but the last `group` groups are complete."""
    if type(group) is not int or not 0 <= group <= 7:
        raise DSLTypeError(f"wait_group takes a static number of groups, 0 to 7, not {group!r}")
    attributes = {"group": f"{group} : i64"}
    emit_op("warpgroup.wait_group()", "nvvm.wgmma.wait.group.sync.aligned", attributes=attributes)
