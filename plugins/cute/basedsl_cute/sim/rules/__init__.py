"""Rules of the simulator, one module per family of operations.

`rules_of` has the rules that a kernel needs. Importing this package fills the table with those of
most kernels; the other families are imported for the kernels that use them.
"""

from __future__ import annotations

import importlib

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
from basedsl_cute.sim.translate.records import KernelRecord
from basedsl_cute.sim.translate.rule_table import RULES, SimRules

# In the order in which they are tried.
_RARE = ("inline_ptx", "tma", "wgmma", "launch_control", "tcgen05")


def rules_of(kernel: KernelRecord) -> SimRules:
    """Return the table, with all rules that there are for operations of the kernel."""
    missing = {op.name for op in kernel.walk() if op.name not in RULES}
    for family in _RARE:
        if not missing:
            break
        importlib.import_module(f"{__name__}.{family}")
        missing.difference_update(RULES)
    return RULES


__all__ = [
    "arith",
    "async_copy",
    "atomic",
    "barrier",
    "cluster",
    "gpu",
    "llvm",
    "math",
    "matrix",
    "mbarrier",
    "memory",
    "nvvm",
    "rules_of",
    "scf",
    "vector",
    "warp",
]
