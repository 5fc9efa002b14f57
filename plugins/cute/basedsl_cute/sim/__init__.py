"""The simulator, target `sim`: it runs lowered kernels on the CPU, with checks that hardware lacks.

`translate(module, name)` gives a `SimKernel`; its `launch` runs it against a `Memory`. Inside,
`translate` turns a kernel into Python by the `rules`, `launch` runs that for every block of a grid,
and `machine` is the hardware: memories, barriers, copies, matrix instructions.
"""

from pathlib import Path

from basedsl import mark_internal
from basedsl_cute.sim.errors import (
    ArithmeticTrapError,
    AssertionFailedError,
    BarrierError,
    CoordinateError,
    DeadlockError,
    LaunchError,
    MemoryAccessError,
    MissingRuleError,
    RaceError,
    SimulationError,
    SimulationWarning,
    UninitializedReadError,
    WarpError,
)
from basedsl_cute.sim.explore import Failure, explore
from basedsl_cute.sim.kernel import SimKernel, translate
from basedsl_cute.sim.machine.memory import Memory, Segment, reachable
from basedsl_cute.sim.machine.ranks import World, ranks
from basedsl_cute.sim.machine_model import Machine
from basedsl_cute.sim.nvidia import NVIDIA, NvidiaGPU
from basedsl_cute.sim.options import SimOptions
from basedsl_cute.sim.profiling import predict, profile

mark_internal(str(Path(__file__).parent))  # a plugin may use the simulator without the DSL cute

__all__ = [
    "NVIDIA",
    "ArithmeticTrapError",
    "AssertionFailedError",
    "BarrierError",
    "CoordinateError",
    "DeadlockError",
    "Failure",
    "LaunchError",
    "Machine",
    "Memory",
    "MemoryAccessError",
    "MissingRuleError",
    "NvidiaGPU",
    "RaceError",
    "Segment",
    "SimKernel",
    "SimOptions",
    "SimulationError",
    "SimulationWarning",
    "UninitializedReadError",
    "WarpError",
    "World",
    "explore",
    "predict",
    "profile",
    "ranks",
    "reachable",
    "translate",
]
