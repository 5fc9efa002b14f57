"""Rules of clusters: their barrier, and addresses in the shared memory of other blocks."""

from __future__ import annotations

from basedsl_cute.dialect.cluster import STORED
from basedsl_cute.sim.machine import cluster, dsmem
from basedsl_cute.sim.machine.memory import CLUSTER_SHIFT
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import nvidia_rule


@nvidia_rule("nvvm.cluster.arrive", "nvvm.cluster.arrive.relaxed", sync="warp")
def _arrive(e: PythonEmitter, op: Op) -> None:
    e.globals["cluster"] = cluster
    e.line(f"cluster.cluster_arrive(g, {e.mask}, {e.at()}, {e.branch()})")


@nvidia_rule("nvvm.cluster.wait", sync="warp")
def _wait(e: PythonEmitter, op: Op) -> None:
    e.globals["cluster"] = cluster
    e.wait(f"cluster.cluster_wait(g, {e.mask}, {e.at()}, {e.branch()})")
    e.line("cluster.leave_cluster_barrier(g)")


@nvidia_rule("nvvm.mapa")
def _mapa(e: PythonEmitter, op: Op) -> None:
    address, rank = e.refs(op)
    e.let(op.results[0], f"{address} + (({rank}).astype(i64) + 1 << {CLUSTER_SHIFT})")


@nvidia_rule("cute.dsmem_store", sync="warp")
def _store(e: PythonEmitter, op: Op) -> None:
    e.globals["dsmem"] = dsmem
    target, barrier, value = op.operands
    size = STORED[str(op.operands[2].type)]
    e.line(
        f"dsmem.store_async(g, {e.mask}, {e.at()}, {e.lanes(target)}, {e.lanes(barrier)}, "
        f"{e.lanes(value)}, {size})"
    )
