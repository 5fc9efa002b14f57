"""The target `sim`: runs lowered kernels on the CPU, with the checks that hardware does not make.

`translate(module, name)` gives a `SimKernel`; its `launch` runs it against a `Memory`.
"""

from basedsl_cute.sim.errors import (
    ArithmeticTrapError,
    AssertionFailedError,
    BarrierError,
    DeadlockError,
    LaunchError,
    MemoryAccessError,
    MissingRuleError,
    RaceError,
    SimulationError,
    UninitializedReadError,
    WarpError,
)
from basedsl_cute.sim.kernel import SimKernel, translate
from basedsl_cute.sim.launch import SimOptions
from basedsl_cute.sim.machine.memory import Memory, Segment, reachable

__all__ = [
    "ArithmeticTrapError",
    "AssertionFailedError",
    "BarrierError",
    "DeadlockError",
    "LaunchError",
    "Memory",
    "MemoryAccessError",
    "MissingRuleError",
    "RaceError",
    "Segment",
    "SimKernel",
    "SimOptions",
    "SimulationError",
    "UninitializedReadError",
    "WarpError",
    "reachable",
    "translate",
]
