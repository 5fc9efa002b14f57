"""Registers, spills and compile times of the attention kernels, by ptxas, without a GPU.

    python bench/attention_code.py

Each row is one kernel for sm_90a: the forward pass of Hopper with the tiles that `ops.attention`
takes, and those by mma.sync, with processor time of a first compilation, ptxas included.
"""

from __future__ import annotations

from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.variant import Variant


def seconds() -> float:
    return sum(
        used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    )


def row(head: int, right: int | None, config: object) -> str:
    x = np.zeros((4, 2, 256, head), np.float16).transpose(2, 3, 1, 0)
    lse = np.zeros((4, 2, 256), np.float32).transpose(2, 1, 0)
    begun = seconds()
    compiled = cute.compile(
        flash._launch,
        *(x, x, x, x, lse, None, None, None),
        *((None,) * 4, (None, None, None, ()), (None,) * 3),
        *(1.0, 1.0, 1, 256, 132, head, head, Variant(right=right), config, 0),
        options="--gpu-arch sm_90a",
    )
    taken = seconds() - begun
    (kernel,) = compiled.resources.values()
    smem = config.smem_bytes(head, head)  # type: ignore[attr-defined]
    kind = type(config).__module__.split(".")[-2]
    return (
        f"| {kind} | {head} | {'yes' if right == 0 else 'no'} | {config.tile} "  # type: ignore[attr-defined]
        f"| {kernel.registers} | {kernel.spills} | {smem} | {taken:.2f} |"
    )


def main() -> None:
    print("| kernel | head | causal | tile | registers | spilled bytes | smem | compile, s |")
    print("|---|---|---|---|---|---|---|---|")
    for head, configs in flash.HOPPER_CONFIGS.items():
        for right, config in zip((0, None), configs, strict=False):
            print(row(head, right, config), flush=True)
    for head in (64, 128, 256):
        tile = (64, 64 if head <= 128 else 32)
        print(row(head, 0, ampere.Config(tile)), flush=True)


if __name__ == "__main__":
    main()
