"""`Machine`: the declarations by which the simulator knows the machine whose kernels it runs.

class Tiny(Machine):
    name = "tiny"
    lanes = 64

    def rules(self, kernel):
        return TINY_RULES

translate(module, "kernel", machine=Tiny()).launch(grid, block, args, memory=memory)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from basedsl import RuleTable
from basedsl_cute.hardware.launch_limits import LaunchLimits


class Machine(ABC):
    """Subclass this to simulate another machine than an NVIDIA GPU: how many threads execute an
    instruction together, what its operations do, and what a launch may ask for.

    Memory has the address spaces of LLVM's GPU targets: 0 generic, 1 global, 3 shared by a block, 4
    constant, 5 of one thread.
    """

    #: The machine's name, for error messages.
    name: ClassVar[str] = "the simulated machine"
    #: The threads that execute an instruction together: those of a warp, or wavefront.
    lanes: ClassVar[int] = 32
    #: The most that a launch may ask for.
    limits: ClassVar[LaunchLimits] = LaunchLimits(smem=1 << 20, cluster=1)

    @abstractmethod
    def rules(self, kernel: Any) -> RuleTable[Any, Any]:
        """Return the table with the rules of a kernel's operations, such as `sim.rules.COMMON`,
        those of MLIR's own dialects, or one that extends it. `kernel.walk()` has the operations.
        """

    def hint(self, hint: str | None) -> str | None:
        """Return what to write instead, for an error of a kernel whose `hint` is for programs of
        cute. By default the same, or None where that names functions of cute.
        """
        return None if hint is not None and "cute." in hint else hint

    def resident_blocks(self, threads: int, shared: int) -> float:
        """Return how many blocks of `threads` threads and `shared` bytes of shared memory run at a
        time, by default all: a block that waits for one that has not started lets it start.
        """
        return math.inf
