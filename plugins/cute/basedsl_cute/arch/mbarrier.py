"""mbarriers: PTX ISA 9.7.13.15, "Parallel Synchronization: mbarrier".

An mbarrier is a 64-bit word of shared memory, named by a pointer. A phase ends when all arrivals it
was initialised for, and all bytes it was told to expect, have come; its parity is the phase's
number modulo 2. A fresh mbarrier is in phase 0, so waiting for parity 1 does not block.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Boolean
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.dialect.attributes import ACQUIRES

_SUSPEND_TICKS = 0x989680  # nanoseconds a try_wait may sleep: 10 ms, far above any wait


@takes_location
def mbarrier_init(mbar_ptr: Any, cnt: Any) -> None:
    """Make an mbarrier for `cnt` arrivals a phase. One thread does it; `mbarrier_init_fence` and
    a barrier of the block (or cluster) come before its first use by others.
    """
    what = "mbarrier_init()"
    emit_op(what, "nvvm.mbarrier.init", [shared_address(mbar_ptr, what), i32(cnt)])


@takes_location
def mbarrier_init_fence() -> None:
    """Make initialised mbarriers known to the cluster and to asynchronous copies."""
    emit_op("mbarrier_init_fence()", "nvvm.fence.mbarrier.init")


@takes_location
def mbarrier_arrive(
    mbar_ptr: Any, peer_cta_rank_in_cluster: Any = None, *, scope: str = "cluster"
) -> None:
    """Arrive once, at this block's mbarrier or at the same one of another block of the cluster.

    An arrival at another block releases what this thread wrote before to the whole cluster, which
    costs a fence of memory. `scope="cta"` spares it: for a thread that has only read.
    """
    what = "mbarrier_arrive()"
    if scope not in ("cta", "cluster"):
        raise DSLTypeError(f"{what}: the scope is 'cta' or 'cluster', not {scope!r}")
    address = shared_address(mbar_ptr, what)
    if peer_cta_rank_in_cluster is None:
        emit_op(what, "nvvm.mbarrier.arrive", [address], ["i64"])
        return
    from basedsl_cute.arch.cluster import map_address

    remote = map_address(address, peer_cta_rank_in_cluster, what)
    attributes = {"scope": "#nvvm.mem_scope<cluster>"} if scope == "cluster" else {}
    emit_op(what, "nvvm.mbarrier.arrive", [remote], attributes=attributes)


@takes_location
def mbarrier_expect_tx(mbar_ptr: Any, bytes: Any) -> None:
    """Expect `bytes` more bytes in the current phase."""
    what = "mbarrier_expect_tx()"
    emit_op(what, "nvvm.mbarrier.expect_tx", [shared_address(mbar_ptr, what), i32(bytes)])


@takes_location
def mbarrier_arrive_and_expect_tx(mbar_ptr: Any, bytes: Any) -> None:
    """Expect `bytes` more bytes in the current phase and arrive once."""
    what = "mbarrier_arrive_and_expect_tx()"
    emit_op(what, "nvvm.mbarrier.arrive.expect_tx", [shared_address(mbar_ptr, what), i32(bytes)])


@takes_location
def mbarrier_wait(mbar_ptr: Any, phase: Any) -> None:
    """Wait until the phase of parity `phase` is complete."""
    wait(mbar_ptr, phase)


@takes_location
def mbarrier_try_wait(mbar_ptr: Any, phase: Any) -> Any:
    """Whether the phase of parity `phase` is complete; may wait a moment for it."""
    return try_wait(mbar_ptr, phase)


def wait(mbar_ptr: Any, phase: Any, stages: int = 0) -> None:
    """`mbarrier_wait`; with `stages`, that of a producer who fills so many."""
    what = "mbarrier_wait()"
    _check_parity(phase)
    operands = [shared_address(mbar_ptr, what), i32(phase), i32(_SUSPEND_TICKS)]
    emit_op(what, "nvvm.mbarrier.try_wait.parity", operands, attributes=_acquires(stages))


def try_wait(mbar_ptr: Any, phase: Any, stages: int = 0) -> Any:
    """`mbarrier_try_wait`; with `stages`, that of a producer who fills so many."""
    what = "mbarrier_try_wait()"
    _check_parity(phase)
    operands = [shared_address(mbar_ptr, what), i32(phase)]
    made = emit_op(what, "nvvm.mbarrier.try_wait", operands, ["i1"], _acquires(stages))
    return Boolean.from_value(made.result)


def _acquires(stages: int) -> dict[str, str]:
    return {ACQUIRES: f"{stages} : i64"} if stages else {}


def _check_parity(phase: Any) -> None:
    if type(phase) is int and phase not in (0, 1):
        raise DSLTypeError(f"the parity of a phase is 0 or 1, not {phase}")
