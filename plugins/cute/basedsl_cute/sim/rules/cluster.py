"""Rules of clusters: their barrier, and addresses in the shared memory of other blocks."""

from __future__ import annotations

from basedsl_cute.dialect.cluster import STORED
from basedsl_cute.sim.machine import cluster, cluster_address, dsmem
from basedsl_cute.sim.machine.memory import CLUSTER_SHIFT
from basedsl_cute.sim.rules.arith import int_type
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import COMMON, nvidia_rule
from basedsl_cute.sim.translate.types import PtrType


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


@nvidia_rule("llvm.ptrtoint", "llvm.ptrtoaddr")
def _ptrtoint(e: PythonEmitter, op: Op) -> None:
    if _in_cluster(op.operands[0]) and int_type(op.results[0]).width == 32:
        e.globals["cluster_address"] = cluster_address
        e.let(op.results[0], f"cluster_address.narrowed({e.ref(op.operands[0])})")
    else:
        COMMON[op.name].apply(e, op)


@nvidia_rule("llvm.inttoptr")
def _inttoptr(e: PythonEmitter, op: Op) -> None:
    if _in_cluster(op.results[0]):
        e.globals["cluster_address"] = cluster_address
        number = e.ref(op.operands[0])
        if int_type(op.operands[0]).width < 64:
            number = f"num.unsigned({number}).astype(i64)"
        e.let(op.results[0], f"cluster_address.widened({number})")
    else:
        COMMON[op.name].apply(e, op)


def _in_cluster(value: Value) -> bool:
    return isinstance(value.type, PtrType) and value.type.space == 7


@nvidia_rule("cute.dsmem_store", sync="warp")
def _store_async(e: PythonEmitter, op: Op) -> None:
    e.globals["dsmem"] = dsmem
    target, barrier, value = op.operands
    size = STORED[str(op.operands[2].type)]
    e.line(
        f"dsmem.store_async(g, {e.mask}, {e.at()}, {e.lanes(target)}, {e.lanes(barrier)}, "
        f"{e.lanes(value)}, {size})"
    )
