"""Rules of the simulator, one module per family of operations.

The rules of another machine are a table that extends `COMMON`:

    RULES = sim_rules("tiny", extends=COMMON)

    @RULES.register("tiny.first_lane", uniform=never)
    def first_lane(e: PythonEmitter, op: Op) -> None:
        e.let(op.results[0], f"{e.lanes(op.operands[0])}[..., g.shape.warp_start]")

`COMMON` are those of all machines, `rules_of` returns those that a kernel for NVIDIA's needs.
Importing this package fills the tables with those of most kernels; the other families are imported
for the kernels that use them.
"""

from __future__ import annotations

import importlib

from basedsl import ask_plugins
from basedsl_cute import hookspecs
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.rules import (
    arith,
    async_copy,
    atomic,
    barrier,
    cluster,
    gpu,
    llvm,
    math,
    matrix,
    mbarrier,
    memory,
    nvvm,
    scf,
    vector,
    warp,
)
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import KernelRecord, Op
from basedsl_cute.sim.translate.rule_table import (
    COMMON,
    NVIDIA_RULES,
    SimRule,
    SimRules,
    always,
    from_operands,
    never,
    per_block,
    sim_rules,
)

# In the order in which they are tried.
_RARE = ("inline_ptx", "tma", "wgmma", "launch_control", "tcgen05")


def rules_of(kernel: KernelRecord) -> SimRules:
    """Return NVIDIA's table, with all rules that there are for operations of the kernel."""
    missing = {op.name for op in kernel.walk() if op.name not in NVIDIA_RULES}
    for family in _RARE:
        if not missing:
            break
        importlib.import_module(f"{__name__}.{family}")
        missing = {name for name in missing if name not in NVIDIA_RULES}
    return _with_plugins_rules(missing) if missing else NVIDIA_RULES


def _with_plugins_rules(missing: set[str]) -> SimRules:
    """Return NVIDIA's table, extended by what other plugins bring for the `missing` operations."""
    rules = sim_rules(NVIDIA_RULES.name, NVIDIA_RULES)
    for table in ask_plugins(hookspecs.basedsl_cute_simulator_rules):
        for row in table.values():
            if row.op in missing and row.op not in rules:
                facts = {"uniform": row.uniform, "sync": row.sync, "volatile": row.volatile}
                rules.register(row.op, **facts)(row.apply)
    return rules


__all__ = [
    "COMMON",
    "NVIDIA_RULES",
    "MissingRuleError",
    "Op",
    "PythonEmitter",
    "SimRule",
    "SimRules",
    "always",
    "arith",
    "async_copy",
    "atomic",
    "barrier",
    "cluster",
    "from_operands",
    "gpu",
    "llvm",
    "math",
    "matrix",
    "mbarrier",
    "memory",
    "never",
    "nvvm",
    "per_block",
    "rules_of",
    "scf",
    "sim_rules",
    "vector",
    "warp",
]
