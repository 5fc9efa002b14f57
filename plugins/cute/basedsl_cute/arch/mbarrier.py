"""mbarriers: PTX ISA 9.7.13.15, "Parallel Synchronization: mbarrier".

An mbarrier is a 64-bit word of shared memory, named by a `Pointer`. A phase ends when as many
arrivals as it was initialised for have come, and all bytes that it was told to expect; the parity
of a phase is its number modulo 2. A fresh mbarrier is in phase 0, so waiting for parity 1 does not
block. All functions raise DSLTypeError for a pointer that is not into shared memory.
"""

from __future__ import annotations

from typing import Any

from basedsl import Boolean, DSLTypeError, Integer
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.dialect.attributes import ACQUIRES
from basedsl_cute.tensors.pointer import Pointer

_SUSPEND_TICKS = 0x989680  # nanoseconds a try_wait may sleep: 10 ms, far above any wait


@takes_location
def mbarrier_init(mbar_ptr: Pointer, cnt: int | Integer) -> None:
    """Initialise an mbarrier for `cnt` arrivals a phase (PTX `mbarrier.init`, sm_80).

    `mbar_ptr` points to 8 bytes of shared memory. One thread does it; `mbarrier_init_fence()` and a
    barrier of the block (or cluster) come before its first use by others.
    """
    what = "mbarrier_init()"
    emit_op(what, "nvvm.mbarrier.init", [shared_address(mbar_ptr, what), i32(cnt)])


@takes_location
def mbarrier_init_fence() -> None:
    """Make initialised mbarriers visible to the cluster and to asynchronous copies.

    PTX `fence.mbarrier_init.release.cluster`; called by the thread that initialised them.
    """
    emit_op("mbarrier_init_fence()", "nvvm.fence.mbarrier.init")


@takes_location
def mbarrier_arrive(
    mbar_ptr: Pointer,
    peer_cta_rank_in_cluster: int | Integer | None = None,
    *,
    scope: str = "cluster",
) -> None:
    """Arrive once at this block's mbarrier, or at the same one of another block of the cluster.

    `mbar_ptr` points to the mbarrier in shared memory. `peer_cta_rank_in_cluster` is the rank of
    the other block (sm_90). An arrival there releases this thread's earlier writes to the whole
    cluster, which costs a memory fence; `scope="cta"` spares it, for a thread that has only read.
    Raises DSLTypeError for another scope.
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
def mbarrier_expect_tx(mbar_ptr: Pointer, bytes: int | Integer) -> None:
    """Have the current phase of the mbarrier `mbar_ptr` expect `bytes` more bytes of asynchronous
    copies (PTX `mbarrier.expect_tx`, sm_90). It does not count as an arrival.
    """
    what = "mbarrier_expect_tx()"
    emit_op(what, "nvvm.mbarrier.expect_tx", [shared_address(mbar_ptr, what), i32(bytes)])


@takes_location
def mbarrier_arrive_and_expect_tx(
    mbar_ptr: Pointer,
    bytes: int | Integer,
    peer_cta_rank_in_cluster: int | Integer | None = None,
) -> None:
    """Have the current phase expect `bytes` more bytes and arrive once (sm_90).

    The mbarrier `mbar_ptr` is this block's, or the same one of the block `peer_cta_rank_in_cluster`
    of the cluster.
    """
    what = "mbarrier_arrive_and_expect_tx()"
    address = shared_address(mbar_ptr, what)
    if peer_cta_rank_in_cluster is not None:
        from basedsl_cute.arch.cluster import map_address

        address = map_address(address, peer_cta_rank_in_cluster, what)
    emit_op(what, "nvvm.mbarrier.arrive.expect_tx", [address, i32(bytes)])


@takes_location
def mbarrier_wait(mbar_ptr: Pointer, phase: int | Integer) -> None:
    """Wait until the phase of parity `phase`, 0 or 1, of the mbarrier `mbar_ptr` is complete (PTX
    `mbarrier.try_wait`, in a loop).

    The first phase has parity 0. A new mbarrier passes a wait for parity 1.
    """
    wait_for_phase(mbar_ptr, phase)


@takes_location
def mbarrier_try_wait(mbar_ptr: Pointer, phase: int | Integer) -> Boolean:
    """Return True if the phase of parity `phase`, 0 or 1, of the mbarrier `mbar_ptr` is complete;
    may wait a moment for it (PTX `mbarrier.try_wait`).
    """
    return phase_is_complete(mbar_ptr, phase)


def wait_for_phase(mbar_ptr: Pointer, phase: int | Integer, stages: int = 0) -> None:
    """Wait as `mbarrier_wait`; `stages` marks the wait of a producer who fills so many stages."""
    what = "mbarrier_wait()"
    _check_parity(phase)
    operands = [shared_address(mbar_ptr, what), i32(phase), i32(_SUSPEND_TICKS)]
    emit_op(what, "nvvm.mbarrier.try_wait.parity", operands, attributes=_acquires(stages))


def phase_is_complete(mbar_ptr: Pointer, phase: int | Integer, stages: int = 0) -> Boolean:
    """Test as `mbarrier_try_wait`; `stages` marks the test of a producer who fills so many
    stages.
    """
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
