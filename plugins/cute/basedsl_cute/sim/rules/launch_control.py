"""Rules of cluster launch control."""

from __future__ import annotations

from basedsl_cute.sim.machine import launch_control, load_store
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import never, nvidia_rule


@nvidia_rule("nvvm.clusterlaunchcontrol.try.cancel", sync="warp", uniform=never)
def _try_cancel(e: PythonEmitter, op: Op) -> None:
    e.globals["launch_control"] = launch_control
    response, barrier = (e.lanes(value) for value in op.operands)
    to_cluster = "multicast" in op.attributes
    e.line(f"launch_control.try_cancel(g, {e.mask}, {e.at()}, {response}, {barrier}, {to_cluster})")


@nvidia_rule("cute.launch_response", sync="warp", uniform=never, volatile=True)
def _response(e: PythonEmitter, op: Op) -> None:
    e.globals["load_store"] = load_store
    address = op.operands[0]
    read = e.const(access_of(e, op, address, op.results[0].type, "read", 16), "read")
    e.let(op.results[0], f"load_store.load_memory(g, {read}, {e.lanes(address)}, {e.mask})")
