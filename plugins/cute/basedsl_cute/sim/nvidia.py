"""The machine of cute's kernels: an NVIDIA GPU that has what the largest of them have."""

from __future__ import annotations

from typing import Any

from basedsl import RuleTable
from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.hardware.targets import SIM, TARGETS, WARP_SIZE
from basedsl_cute.sim.machine_model import Machine

# The device that cooperative launches and waiting blocks are counted for: an H100 SXM.
MULTIPROCESSORS = 132


class NvidiaGPU(Machine):
    """An NVIDIA GPU with the multiprocessors of an H100 SXM."""

    name = "the simulator"
    lanes = WARP_SIZE
    limits = LaunchLimits(smem=TARGETS[SIM].smem_per_block)

    def rules(self, kernel: Any) -> RuleTable[Any, Any]:
        """Return the rules of MLIR's dialects, and those of `nvvm` and `cute` that it uses."""
        from basedsl_cute.sim.rules import rules_of

        return rules_of(kernel)

    def hint(self, hint: str | None) -> str | None:
        """Return the hint."""
        return hint

    def resident_blocks(self, threads: int, shared: int) -> int:
        """Return how many such blocks run at a time."""
        return MULTIPROCESSORS * TARGETS[SIM].resident_blocks(threads, shared)


NVIDIA = NvidiaGPU()
