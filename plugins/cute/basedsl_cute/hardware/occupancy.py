"""Occupancy: how many blocks of a kernel one SM runs at a time, and what limits it.

The rules are those of the CUDA toolkit's occupancy calculator (its header cuda_occupancy.h):

- a warp's registers are allocated in units of 256, within one of the SM's 4 partitions;
- a block's shared memory, with the 1024 bytes that the system takes from compute capability 8.0 on,
  is allocated in units of 128 bytes (of 256 before);
- the SM has room for a number of warps and of blocks.

`targets.py` has the figures of each architecture.
"""

from __future__ import annotations

from dataclasses import dataclass

from basedsl_cute.hardware.targets import (
    MAX_REGISTERS_PER_THREAD,
    MAX_THREADS_PER_BLOCK,
    REGISTERS_PER_SM,
    SYSTEM_SMEM,
    WARP_SIZE,
    Target,
)

REGISTER_UNIT = 256  # registers that a warp's allocation is a multiple of
PARTITIONS = 4  # of an SM; each has its part of the registers, and a warp lies in one
SMEM_UNIT, SMEM_UNIT_BEFORE_8_0 = 128, 256  # bytes


@dataclass(frozen=True)
class Occupancy:
    """The blocks and warps of one kernel that an SM of `target` runs at a time.

    `limits` are the blocks that each resource has room for; `limited_by` are those with the least.
    `fraction` is the part of the SM's warps that is in use.
    """

    target: str
    blocks: int
    warps: int
    max_warps: int
    limits: dict[str, int]

    @property
    def fraction(self) -> float:
        return self.warps / self.max_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def __str__(self) -> str:
        why = ", ".join(self.limited_by)
        return (
            f"{self.fraction:.0%} on {self.target}: {self.blocks} blocks, {self.warps} of "
            f"{self.max_warps} warps of an SM; limited by {why}"
        )


def occupancy(target: Target, threads: int, registers: int, smem: int) -> Occupancy:
    """Return the occupancy of blocks of `threads` threads with `registers` registers each and
    `smem` bytes of shared memory, static and dynamic. Raises ValueError for a block that no
    architecture has; a block that `target` has no room for gets 0 blocks.
    """
    if not 1 <= threads <= MAX_THREADS_PER_BLOCK:
        raise ValueError(f"a block has 1 to {MAX_THREADS_PER_BLOCK} threads, not {threads}")
    if not 0 <= registers <= MAX_REGISTERS_PER_THREAD or smem < 0:
        raise ValueError(f"{registers} registers a thread and {smem} bytes are no block's")
    warps = _round_up(threads, WARP_SIZE) // WARP_SIZE
    limits = {
        "warps": target.max_warps_per_sm // warps,
        "blocks": target.max_blocks_per_sm,
        "registers": _by_registers(warps, registers, target),
        "shared memory": _by_smem(target, smem),
    }
    blocks = min(limits.values())
    return Occupancy(target.name, blocks, blocks * warps, target.max_warps_per_sm, limits)


def _by_registers(warps: int, registers: int, target: Target) -> int:
    if registers == 0:
        return target.max_blocks_per_sm
    each = _round_up(registers * WARP_SIZE, REGISTER_UNIT)
    return REGISTERS_PER_SM // PARTITIONS // each * PARTITIONS // warps


def _by_smem(target: Target, smem: int) -> int:
    modern = not target.is_gpu or target.capability >= (8, 0)
    if smem > target.smem_per_block:
        return 0
    taken = smem + SYSTEM_SMEM if modern else smem
    taken = _round_up(taken, SMEM_UNIT if modern else SMEM_UNIT_BEFORE_8_0)
    return target.smem_per_sm // taken if taken else target.max_blocks_per_sm


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
