"""The options of cute, on top of the core's; environment variables begin with CUTE_DSL_."""

from __future__ import annotations

from dataclasses import dataclass

from basedsl.options import Options, option


@dataclass(frozen=True, kw_only=True)
class CuteOptions(Options, prefix="CUTE_DSL_"):
    """What `cute.compile(..., options="...")` and the environment can set."""

    arch: str = option(
        "",
        "target: sm_90a, ..., or sim; by default this machine's GPU, else sim",
        affects_output=True,
    )
    opt_level: int = option(
        3, "how much LLVM and ptxas optimise kernels", affects_output=True, choices=(0, 1, 2, 3)
    )
    enable_assertions: bool = option(
        False,
        "keep assertions in kernels on the GPU (the simulator always has them)",
        affects_output=True,
    )
    lineinfo: bool = option(
        False,
        "line tables for profilers, mapping machine code to Python lines",
        affects_output=True,
    )
    contract: bool = option(
        False,
        "let a * b + c in kernels round once (FMA), which is faster and not what Python computes",
        affects_output=True,
    )
    ptxas_options: str = option("", "further options for ptxas", affects_output=True)
    check_races: bool = option(
        False, "the simulator reports unordered accesses to shared memory", affects_output=False
    )
