"""Rules of the simulator, one module per family of operations.

Importing this package fills the table, `RULES`.
"""

from basedsl_cute.sim.rules import (
    arith,
    async_copy,
    atomic,
    barrier,
    cluster,
    gpu,
    inline_ptx,
    launch_control,
    llvm,
    math,
    matrix,
    mbarrier,
    memory,
    nvvm,
    scf,
    tcgen05,
    tma,
    vector,
    warp,
    wgmma,
)
from basedsl_cute.sim.translate.rule_table import RULES

__all__ = [
    "RULES",
    "arith",
    "async_copy",
    "atomic",
    "barrier",
    "cluster",
    "gpu",
    "inline_ptx",
    "launch_control",
    "llvm",
    "math",
    "matrix",
    "mbarrier",
    "memory",
    "nvvm",
    "scf",
    "tcgen05",
    "tma",
    "vector",
    "warp",
    "wgmma",
]
