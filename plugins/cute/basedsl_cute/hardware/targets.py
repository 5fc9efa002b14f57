"""The targets that kernels compile for: a row for each NVIDIA architecture, and the simulator."""

from __future__ import annotations

import re
from dataclasses import dataclass

from basedsl.errors import DSLError

ENVIRONMENT_VARIABLE = "CUTE_DSL_ARCH"
SIM = "sim"


@dataclass(frozen=True)
class Target:
    """One architecture.

    Memory sizes are bytes of shared memory: of an SM, the most one block can opt into, and the
    most it can have statically (CUDA C++ Programming Guide, "Technical Specifications per Compute
    Capability"). `ptx` is the PTX ISA version that the code is written in: 8.4 (CUDA 12.4), or the
    first that knows the architecture (PTX ISA, "Release Notes").
    """

    name: str
    ptx: int = 0
    smem_per_sm: int = 0
    smem_per_block: int = 0
    max_warps_per_sm: int = 64
    max_blocks_per_sm: int = 32
    static_smem: int = 48 * 1024
    registers_per_sm: int = 65536
    max_threads_per_block: int = 1024
    warp_size: int = 32

    @property
    def is_gpu(self) -> bool:
        return self.name != SIM

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability; (0, 0) for the simulator."""
        digits = re.sub(r"\D", "", self.name)
        return (int(digits[:-1]), int(digits[-1])) if digits else (0, 0)

    @property
    def features(self) -> str:
        """LLVM's NVPTX feature string."""
        return f"+ptx{self.ptx}"


def _kib(n: int) -> int:
    return n * 1024


TARGETS = {
    target.name: target
    for target in (
        Target("sm_75", 84, _kib(64), _kib(64), 32, 16),
        Target("sm_80", 84, _kib(164), _kib(163), 64, 32),
        Target("sm_86", 84, _kib(100), _kib(99), 48, 16),
        Target("sm_87", 84, _kib(164), _kib(163), 48, 16),
        Target("sm_89", 84, _kib(100), _kib(99), 48, 24),
        Target("sm_90", 84, _kib(228), _kib(227), 64, 32),
        Target("sm_90a", 84, _kib(228), _kib(227), 64, 32),
        Target("sm_100", 86, _kib(228), _kib(227), 64, 32),
        Target("sm_100a", 86, _kib(228), _kib(227), 64, 32),
        Target("sm_100f", 88, _kib(228), _kib(227), 64, 32),
        Target("sm_103", 88, _kib(228), _kib(227), 64, 32),
        Target("sm_103a", 88, _kib(228), _kib(227), 64, 32),
        Target("sm_103f", 88, _kib(228), _kib(227), 64, 32),
        Target("sm_120", 87, _kib(100), _kib(99), 48, 24),
        Target("sm_120a", 87, _kib(100), _kib(99), 48, 24),
        Target("sm_121", 88, _kib(100), _kib(99), 48, 24),
        Target("sm_121a", 88, _kib(100), _kib(99), 48, 24),
        # The simulator promises what the largest of them have.
        Target(SIM, 0, _kib(228), _kib(227), 64, 32),
    )
}

# Where a family has an "a" variant, a device of it runs that: wgmma, setmaxnreg, tcgen05 need it
# (PTX ISA 11.1.2, "Architecture-specific features").
_PREFERRED = {(9, 0): "sm_90a", (10, 0): "sm_100a", (10, 3): "sm_103a", (12, 0): "sm_120a"}


def target_of(name: str) -> Target:
    """The row called `name`; an error with the known ones otherwise."""
    found = TARGETS.get(name.strip().lower())
    if found is None:
        raise DSLError(
            f"{name!r} is no target; there are {', '.join(TARGETS)}",
            hint=f"set {ENVIRONMENT_VARIABLE}=sm_90a, or =sim for the simulator",
        )
    return found


def target_for_capability(major: int, minor: int) -> Target:
    """The target for a device: its own row, or the newest that such a device still runs."""
    preferred = _PREFERRED.get((major, minor), f"sm_{major}{minor}")
    if preferred in TARGETS:
        return TARGETS[preferred]
    older = [
        t for t in TARGETS.values()
        if t.is_gpu and t.name[-1].isdigit() and t.capability <= (major, minor)
    ]  # fmt: skip
    if not older:
        raise DSLError(f"a GPU of compute capability {major}.{minor} is too old for this compiler")
    return max(older, key=lambda t: t.capability)
