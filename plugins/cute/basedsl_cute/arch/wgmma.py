"""The order of warpgroup matrix instructions: PTX ISA 9.7.15.7, "wgmma.fence" and its groups
(sm_90a).
"""

from __future__ import annotations

from basedsl import DSLTypeError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op


@takes_location
def wgmma_fence() -> None:
    """Order this warpgroup's register accesses before later wgmma (PTX
    `wgmma.fence.sync.aligned`).

    It comes before the first wgmma, and before one whose registers were written otherwise.
    """
    emit_op("warpgroup.fence()", "nvvm.wgmma.fence.aligned")


@takes_location
def wgmma_commit_group() -> None:
    """Close the group of the wgmma that this warpgroup has issued (PTX `wgmma.commit_group`)."""
    emit_op("warpgroup.commit_group()", "nvvm.wgmma.commit.group.sync.aligned")


@takes_location
def wgmma_wait_group(group: int) -> None:
    """Wait until all but the warpgroup's last `group` groups are complete (PTX
    `wgmma.wait_group`).

    Only then may the accumulators be read. `group` is a static integer from 0 to 7 (DSLTypeError
    otherwise).
    """
    if type(group) is not int or not 0 <= group <= 7:
        raise DSLTypeError(f"wait_group takes a static number of groups, 0 to 7, not {group!r}")
    attributes = {"group": f"{group} : i64"}
    emit_op("warpgroup.wait_group()", "nvvm.wgmma.wait.group.sync.aligned", attributes=attributes)
