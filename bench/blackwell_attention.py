"""Blackwell's attention without a GPU: what ptxas says of it, its loops, and bounds on paper.

    python bench/blackwell_attention.py > bench/results/DATE-blackwell-attention.md

The machine code needs nvdisasm (the package nvidia-cuda-nvdisasm). Rates are those that NVIDIA has
published, see `ops.blackwell.config`; exponentials are 16 a cycle and multiprocessor (CUDA C++
Programming Guide, "Arithmetic Instructions", table of throughputs, compute capability 10.0).
"""

import os
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np

import basedsl_cute as cute
from basedsl_cute.hardware.targets import ENVIRONMENT_VARIABLE
from basedsl_cute.lowering.ptx.sass import disassemble
from basedsl_cute.ops.blackwell import attention as blackwell
from basedsl_cute.ops.blackwell import config as model
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.variant import Variant

ARCHITECTURES = ("sm_100a", "sm_103a")
EXPONENTIALS = 16  # of a multiprocessor a cycle
SCHEDULERS = 4  # of a multiprocessor, each starts a warp's instruction a cycle
QUERIES, KEYS = blackwell.Config.tile
_ADDRESS = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(\S*)")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_JUMP = re.compile(r"BRA.*`\((\.L_x_\d+)\)")


def compiled(head, right, arch, computed=None):
    """The kernel for heads of `head` elements, causal with `right` 0, as chosen or with `computed`
    of eight weights by polynomials.
    """
    os.environ[ENVIRONMENT_VARIABLE] = arch  # the configuration is the target's
    config = flash.blackwell_config(head, right)
    if computed is not None:
        config = replace(config, computed=computed)
    x = np.zeros((1, 2, 256, head), np.float16).transpose(2, 3, 1, 0)
    lse = np.zeros((1, 2, 256), np.float32).transpose(2, 1, 0)
    return cute.compile(
        flash._launch,
        *(x, x, x, x, lse, None, None, None),
        *((None,) * 4, (None, None, None), (), (None,) * 3),
        *(1.0, 1.0, 1, 256, 148, head, head, Variant(right=right), config, False, 0),
        options=f"--gpu-arch {arch}",
    )


def steps(sass):
    """The instructions of a step of 256 queries and 128 keys in the loops of roles, by name; those
    that mask scores, which few steps need, apart: {role: (counter, counter of masks)}.
    """
    lines, labels = [], {}
    for line in sass.splitlines():
        label = _LABEL.match(line.strip())
        if label:
            labels[label[1]] = len(lines)
        elif _ADDRESS.search(line):
            lines.append(line)
    loops = {}
    for i, line in enumerate(lines):
        jump = _JUMP.search(line)
        begin = labels.get(jump[1], i + 1) if jump else i + 1
        if begin < i:
            counts, masks = split(lines, labels, begin, i + 1)
            role = (
                "softmax" if counts["MUFU"] > KEYS // 4
                else "multiply" if any("MMA" in op for op in counts)
                else "correct" if counts["STTM"] and counts["LDTM"] else None
            )  # fmt: skip
            if role and sum(counts.values()) < sum(loops.get(role, ({"": 1 << 30},))[0].values()):
                loops[role] = counts, masks
    return loops


def split(lines, labels, begin, end):
    """The instructions of a loop, and those of its blocks that mask."""
    cuts = {begin, end, *(at for at in labels.values() if begin < at < end)}
    cuts |= {i + 1 for i in range(begin, end) if "BRA" in lines[i]}
    counts, masks = Counter(), Counter()
    ends = sorted(cuts)
    for first, last in pairwise(ends):
        found = Counter(_ADDRESS.search(x)[1] for x in lines[first:last])
        (masks if found["FSEL"] > 16 else counts).update(found)
    return counts, masks


def main():
    print("# Blackwell's attention without a GPU\n")
    print("`python bench/blackwell_attention.py` wrote this. Nothing here was measured on a GPU.\n")
    print("## What ptxas says\n")
    print(
        "| heads | | target | registers | spills (bytes) | local (bytes) | shared memory (bytes) |"
    )
    print("|---|---|---|---|---|---|---|")
    loops = {}
    for head in blackwell.HEADS:
        for right, name in ((None, "full"), (0, "causal")):
            for arch in ARCHITECTURES:
                made = compiled(head, right, arch)
                (kernel,) = made.resources.values()
                spills = kernel.spill_stores + kernel.spill_loads
                print(
                    f"| {head} | {name} | {arch} | {kernel.registers} | {spills} | {kernel.local} "
                    f"| {kernel.static_smem + kernel.dynamic_smem} |"
                )
                loops[head, name] = steps(disassemble(made.__cubin__, "-c"))
    print("\n## The loops of roles\n")
    print(f"Instructions of a warp in a step of {QUERIES} queries and {KEYS} keys.\n")
    print("| heads | | role | instructions | masks, where needed | local memory | most frequent |")
    print("|---|---|---|---|---|---|---|")
    for (head, name), found in loops.items():
        for role, (counts, masks) in found.items():
            often = ", ".join(f"{op} {n}" for op, n in counts.most_common(6))
            local = counts["LDL"] + counts["STL"]
            print(
                f"| {head} | {name} | {role} | {sum(counts.values())} | {sum(masks.values())} "
                f"| {local} | {often} |"
            )
    print("\n## On paper\n")
    print(
        "Cycles of a multiprocessor in a step by what works at the same time, full attention, "
        "where of each eight weights some come from polynomials.\n"
    )
    print("| heads | by polynomials | tensor cores | exponentials | issue slots | loads | bound | "
          "TFLOP/s of it |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for head in blackwell.HEADS:
        for computed in range(5 if head == 64 else 1):
            made = compiled(head, None, ARCHITECTURES[0], computed)
            (kernel,) = made.resources.values()
            counts, _ = steps(disassemble(made.__cubin__, "-c"))["softmax"]
            macs = 2 * QUERIES * KEYS * head
            parts = {
                "tensor cores": macs / model.MACS_PER_CYCLE[16],
                "exponentials": 8 * 32 * counts["MUFU"] / EXPONENTIALS,
                "issue slots": 8 * sum(counts.values()) / SCHEDULERS,
                "loads": 2 * KEYS * head * 2 / model.L2_BYTES_PER_CYCLE,
            }
            bound = max(parts, key=parts.get)
            rate = 2 * macs / parts[bound] * model.CLOCK * model.MULTIPROCESSORS
            cells = " | ".join(f"{x:.0f}" for x in parts.values())
            spills = f", {kernel.spill_stores} bytes spilled" if kernel.spill_stores else ""
            print(f"| {head} | {computed} of 8{spills} | {cells} | {bound} | {rate / 1e12:.0f} |")


if __name__ == "__main__":
    main()
