"""The targets that kernels compile for: a row for each NVIDIA architecture, and the simulator.

The constants are of every architecture in the table.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from basedsl import DSLError, ask_plugins
from basedsl_cute import hookspecs
from basedsl_cute.hardware.tensor_memory import TMEM_COLUMNS

ENVIRONMENT_VARIABLE = "CUTE_DSL_ARCH"
SIM = "sim"


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
WARP_SIZE = 32  # threads
MAX_THREADS_PER_BLOCK = 1024
REGISTERS_PER_SM = 64 * 1024  # of 32 bits each
MAX_REGISTERS_PER_THREAD = 255
STATIC_SMEM = 48 * 1024  # bytes of shared memory that a block has without opting in to more
SYSTEM_SMEM = 1024  # bytes that the system takes beside what a block asks for (8.0 and later)
PORTABLE_CLUSTER, MAX_CLUSTER = 8, 16  # blocks: on every GPU with clusters; after opting in
# PTX ISA 9.7.15.5, "wgmma": the warps that execute one of its instructions together.
WARPS_PER_WARPGROUP = 4

# PTX ISA 11.1.2, "Target directive".
_NAME = re.compile(r"sm_(\d+)(\d)([af]?)")


@dataclass(frozen=True)
class Target:
    """One architecture.

    Memory sizes are bytes of shared memory: of an SM, and the most one block can opt into (CUDA C++
    Programming Guide, "Technical Specifications per Compute Capability"). `ptx` is the PTX ISA
    version that the code is written in: 8.4 (CUDA 12.4), or the first that knows the architecture
    (PTX ISA, "Release Notes"). `tmem_columns` are the columns of tensor memory of an SM; code has
    it only on targets with tcgen05 (`requirements`).
    """

    name: str
    ptx: int
    smem_per_sm: int
    smem_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    tmem_columns: int = 0

    @property
    def is_gpu(self) -> bool:
        return self.name != SIM

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability (major, minor); (0, 0) for the simulator."""
        return _parts(self.name)[0] if self.is_gpu else (0, 0)

    @property
    def variant(self) -> str:
        """The end of the name: "a" for one architecture's own code, "f" for its family's, or ""."""
        return _parts(self.name)[1] if self.is_gpu else ""

    @property
    def global_access_bytes(self) -> int:
        """The bytes of the widest load and store of global memory: 32 from sm_100 on (PTX ISA, "ld"
        and "st", `.v4.b64`), else 16, and 16 on the simulator too.
        """
        return 32 if self.capability >= (10, 0) else 16

    def features(self, needed: int = 0) -> str:
        """Return LLVM's NVPTX feature string, for PTX of at least the version `needed`."""
        return f"+ptx{max(self.ptx, needed)}"

    def has_features_of(self, architecture: str) -> bool:
        """Tell whether code for this target may use what `architecture` has (PTX ISA 11.1.2).

        Every architecture has what "sm_100" has from its compute capability on. "sm_100f" adds what
        "a" and "f" targets of the same major compute capability have from there on, "sm_100a" what
        it has alone. The simulator has everything.
        """
        if not self.is_gpu:
            return True
        capability, variant = _parts(architecture)
        if variant == "a":
            return self.name == architecture
        if variant == "f" and (not self.variant or self.capability[0] != capability[0]):
            return False
        return self.capability >= capability

    def resident_blocks(self, threads: int, smem: int) -> int:
        """Return how many blocks of `threads` threads and `smem` bytes of shared memory one SM
        runs at a time, as far as its warps, blocks and shared memory go.
        """
        warps = -(-threads // WARP_SIZE)
        return min(
            self.max_blocks_per_sm,
            self.max_warps_per_sm // warps,
            self.smem_per_sm // (smem + SYSTEM_SMEM),
        )


@functools.cache
def _parts(name: str) -> tuple[tuple[int, int], str]:
    match = _NAME.fullmatch(name)
    assert match is not None, name
    major, minor, variant = match.groups()
    return (int(major), int(minor)), variant


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
        Target("sm_100", 88, _kib(228), _kib(227), 64, 32, TMEM_COLUMNS),
        Target("sm_100a", 88, _kib(228), _kib(227), 64, 32, TMEM_COLUMNS),
        Target("sm_100f", 88, _kib(228), _kib(227), 64, 32, TMEM_COLUMNS),
        Target("sm_103", 88, _kib(228), _kib(227), 64, 32, TMEM_COLUMNS),
        Target("sm_103a", 88, _kib(228), _kib(227), 64, 32, TMEM_COLUMNS),
        Target("sm_103f", 88, _kib(228), _kib(227), 64, 32, TMEM_COLUMNS),
        Target("sm_110", 90, _kib(228), _kib(227), 48, 24, TMEM_COLUMNS),
        Target("sm_110a", 90, _kib(228), _kib(227), 48, 24, TMEM_COLUMNS),
        Target("sm_110f", 90, _kib(228), _kib(227), 48, 24, TMEM_COLUMNS),
        Target("sm_120", 88, _kib(100), _kib(99), 48, 24),
        Target("sm_120a", 88, _kib(100), _kib(99), 48, 24),
        Target("sm_120f", 88, _kib(100), _kib(99), 48, 24),
        Target("sm_121", 88, _kib(100), _kib(99), 48, 24),
        Target("sm_121a", 88, _kib(100), _kib(99), 48, 24),
        Target("sm_121f", 88, _kib(100), _kib(99), 48, 24),
        # The simulator promises what the largest of them have.
        Target(SIM, 0, _kib(228), _kib(227), 64, 32, TMEM_COLUMNS),
    )
}

# The most blocks that an SM of any architecture runs at a time.
MAX_BLOCKS_PER_SM = max(target.max_blocks_per_sm for target in TARGETS.values())

# Where a family has an "a" variant, a device of it runs that: wgmma, setmaxnreg, tcgen05 need it
# (PTX ISA 11.1.2).
_PREFERRED = {
    (9, 0): "sm_90a", (10, 0): "sm_100a", (10, 3): "sm_103a", (11, 0): "sm_110a",
    (12, 0): "sm_120a",
}  # fmt: skip


def target_of(name: str) -> Target:
    """Return the row called `name`; DSLError with the known ones if there is none."""
    found = TARGETS.get(name.strip().lower())
    if found is None:
        _add_plugins_targets()
        found = TARGETS.get(name.strip().lower())
    if found is None:
        renamed = name.strip().lower().replace("sm_101", "sm_110")
        raise DSLError(
            f"{name!r} is no target",
            notes=((f"there are {', '.join(TARGETS)}", None),),
            hint=f"CUDA 13 has renamed it: {ENVIRONMENT_VARIABLE}={renamed}"
            if renamed in TARGETS
            else f"set {ENVIRONMENT_VARIABLE}=sm_90a, or =sim for the simulator",
        )
    return found


def _add_plugins_targets() -> None:
    """Add the architectures of other plugins to the table."""
    for answer in ask_plugins(hookspecs.basedsl_cute_architectures):
        for target in answer:
            if not isinstance(target, Target) or _NAME.fullmatch(target.name) is None:
                raise DSLError(f"a plugin's architecture is {target!r}, not a Target called sm_XY")
            TARGETS.setdefault(target.name, target)


def target_for_capability(major: int, minor: int) -> Target:
    """Return the target for a device of this compute capability: its own row, or the newest that
    such a device still runs. DSLError for a device older than all rows.
    """
    preferred = _PREFERRED.get((major, minor), f"sm_{major}{minor}")
    if preferred not in TARGETS:
        _add_plugins_targets()
    if preferred in TARGETS:
        return TARGETS[preferred]
    older = [
        t for t in TARGETS.values()
        if t.is_gpu and not t.variant and t.capability <= (major, minor)
    ]  # fmt: skip
    if not older:
        raise DSLError(f"a GPU of compute capability {major}.{minor} is too old for this compiler")
    return max(older, key=lambda t: t.capability)
