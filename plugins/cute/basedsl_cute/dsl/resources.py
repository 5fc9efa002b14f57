"""The resources of a compilation's kernels: registers, spills, memories, occupancy."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass

from basedsl import DSLCallError, Resources, Stages
from basedsl_cute.hardware.occupancy import Occupancy, occupancy
from basedsl_cute.hardware.targets import Target, target_of


@dataclass(frozen=True)
class KernelResources:
    """The resources of one kernel. Sizes are bytes: of a thread for spills and `local` memory, of a
    block for shared memory.

    `registers` is None on the simulator, and without ptxas. `threads` is the size of a block if
    every launch has the same; `dynamic_smem` is what the compiler itself asks for, to which
    launches with `smem=` add.
    """

    name: str
    target: Target
    registers: int | None = None
    spill_stores: int = 0
    spill_loads: int = 0
    local: int = 0
    static_smem: int = 0
    dynamic_smem: int = 0
    barriers: int = 0
    constant: int = 0
    threads: int | None = None

    @property
    def spills(self) -> int:
        """The bytes that a thread stores and loads because it has no registers left."""
        return self.spill_stores + self.spill_loads

    def occupancy(
        self, threads: int | None = None, smem: int | None = None, arch: str | None = None
    ) -> Occupancy:
        """Return how many blocks an SM runs at a time, and what limits that.

        `threads` is the size of a block, `smem` the dynamic shared memory of a launch in bytes, and
        `arch` an architecture; by default those that the kernel was compiled for. Raises
        DSLCallError where the size of a block or the registers are not known.
        """
        size = self.threads if threads is None else threads
        if size is None:
            raise DSLCallError(
                f"the launches of the kernel '{self.name}' say the size of a block at run time",
                hint="pass it: occupancy(threads=256)",
            )
        if self.registers is None:
            raise DSLCallError(
                f"the registers of the kernel '{self.name}' are not known without machine code",
                hint='compile with options="--gpu-arch sm_90a", on any machine with ptxas',
            )
        memory = self.static_smem + (self.dynamic_smem if smem is None else smem)
        target = self.target if arch is None else target_of(arch)
        try:
            return occupancy(target, size, self.registers, memory)
        except ValueError as error:
            raise DSLCallError(str(error)) from None

    def figures(self) -> dict[str, str]:
        found = {}
        if self.registers is not None:
            found["registers"] = str(self.registers)
            found["bytes spilled"] = str(self.spills)
            found["bytes local"] = str(self.local)
        found["bytes shared"] = str(self.static_smem + self.dynamic_smem)
        if self.registers is not None and self.threads is not None:
            found["occupancy"] = str(self.occupancy())
        return found


def read_resources(stages: Stages, target: Target) -> Resources[KernelResources]:
    """Read the resources of the kernels from the stages of a compilation."""
    if "resources" in stages:
        kernels = json.loads(stages.text("resources"))["kernels"]
        return Resources({name: _of_report(name, target, row) for name, row in kernels.items()})
    if "launches" not in stages:  # a dry run
        return Resources({})
    table = pickle.loads(stages.binary("launches"))
    return Resources(
        {
            one.name: KernelResources(
                one.name,
                target,
                static_smem=one.static_smem,
                dynamic_smem=one.smem_bytes,
                threads=None if one.block is None else one.block[0] * one.block[1] * one.block[2],
            )
            for one in table.kernels
        }
    )


def _of_report(name: str, target: Target, row: dict[str, int]) -> KernelResources:
    return KernelResources(
        name,
        target,
        registers=row["registers"],
        spill_stores=row["spill_stores"],
        spill_loads=row["spill_loads"],
        local=row["stack"],
        static_smem=row["static_smem"],
        dynamic_smem=row.get("dynamic_smem", 0),
        barriers=row["barriers"],
        constant=row["constant"],
        threads=row.get("threads"),
    )
