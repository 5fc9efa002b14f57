"""Rules of a block's barriers, and of fences."""

from __future__ import annotations

from basedsl_cute.sim.machine import barriers
from basedsl_cute.sim.machine.access import BLOCK_SCOPE, GPU_SCOPE, SYSTEM_SCOPE
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import Sync, never, nvidia_rule, rule


def _sync_of(op: Op) -> Sync:
    numbered = any(op.segments()[:2]) if "operandSegmentSizes" in op.attributes else False
    return "warp" if numbered else "block"


def _wait(e: PythonEmitter, number: str = "0", count: str = "None", votes: str = "None") -> str:
    """Write a barrier of a warp; returns the name of the barrier object."""
    barrier, before, wait = e.temporary("b"), e.temporary("n"), e.temporary("w")
    e.line(
        f"{barrier}, {before}, {wait} = barriers.enter_barrier(g, {e.mask}, {e.at()}, "
        f"{e.branch()}, {number}, {count}, {votes})"
    )
    e.line(f"if {wait} is not None: yield {wait}")
    e.line(f"barriers.leave_barrier(g, {barrier})")
    return barrier


@rule("gpu.barrier", sync="block")
@nvidia_rule("nvvm.barrier0", sync="block")
def _barrier(e: PythonEmitter, op: Op) -> None:
    e.globals["barriers"] = barriers
    if e.coroutine:
        _wait(e)
    else:
        e.line(f"barriers.sync_in_step(g, {e.mask}, {e.at()}, {e.branch()})")


@nvidia_rule("nvvm.barrier", uniform=never, sync=_sync_of)
def _nvvm_barrier(e: PythonEmitter, op: Op) -> None:
    e.globals["barriers"] = barriers
    segments = op.segments() or [[], [], []]
    number, count, predicate = ([e.ref(v) for v in part] for part in segments)
    kind = op.word("reductionOp")
    votes = [e.lanes(v) for v in segments[2]]
    if e.coroutine:
        barrier = _wait(
            e,
            number[0] if number else "0",
            count[0] if count else "None",
            votes[0] if votes else "None",
        )
        if op.results:
            e.let(op.results[0], f"barriers.barrier_outcome(g, {barrier}, {kind!r})")
    elif predicate:
        e.let(
            op.results[0],
            f"barriers.reduce_in_step(g, {kind!r}, {votes[0]}, {e.mask}, {e.at()}, {e.branch()})",
        )
    else:
        e.line(f"barriers.sync_in_step(g, {e.mask}, {e.at()}, {e.branch()})")


@nvidia_rule("nvvm.barrier.arrive", sync="warp")
def _arrive(e: PythonEmitter, op: Op) -> None:
    e.globals["barriers"] = barriers
    *numbers, count = e.refs(op)
    number = numbers[0] if numbers else "0"
    e.line(f"barriers.arrive_at_barrier(g, {e.mask}, {e.at()}, {e.branch()}, {number}, {count})")


@nvidia_rule(
    "nvvm.memory.barrier", "nvvm.fence.sc.cluster", "nvvm.membar.cta", "nvvm.membar.gl",
    "nvvm.membar.sys",
)  # fmt: skip
def _fence(e: PythonEmitter, op: Op) -> None:
    """Only the race check minds: stores are seen at once and in order."""
    e.globals["barriers"] = barriers
    word = op.name.rpartition(".")[2] if "membar" in op.name else op.word("scope")
    scope = {"cta": BLOCK_SCOPE, "sys": SYSTEM_SCOPE}.get(word, GPU_SCOPE)
    e.line(f"barriers.fence_memory(g, {e.mask}, {scope})")


@nvidia_rule(
    "nvvm.fence.proxy.release", "nvvm.fence.proxy.sync_restrict", "nvvm.fence.sync_restrict"
)
def _no_fence(e: PythonEmitter, op: Op) -> None:
    """Nothing to do: stores are seen at once and in order."""


@nvidia_rule("nvvm.fence.mbarrier.init")
def _made(e: PythonEmitter, op: Op) -> None:
    """Only the race check minds: the mbarriers are known past a relaxed barrier of the cluster."""
    e.globals["barriers"] = barriers
    e.line("barriers.fence_mbarriers(g)")


@nvidia_rule("nvvm.fence.proxy")
def _proxy(e: PythonEmitter, op: Op) -> None:
    """Only the race check minds: asynchronous units see the writes before the fence."""
    kind = op.word("kind")  # the last word of async.shared and of async.global
    e.globals["barriers"] = barriers
    if kind in ("async", "shared"):
        e.line("barriers.fence_proxy(g)")
    if kind in ("async", "global"):
        e.line("barriers.fence_global_proxy(g)")
