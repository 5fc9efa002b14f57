"""The Blackwell GEMM without a GPU: what ptxas says of it, its main loop, and a model on paper.

    python bench/blackwell_model.py > bench/results/DATE-blackwell-paper.md

The model takes published rates (`ops.blackwell.config`), the machine code needs nvdisasm (the
package nvidia-cuda-nvdisasm). With a GPU, `make gpu-bench` measures kernels against cuBLAS.
"""

import re
from collections import Counter

import numpy as np

import basedsl_cute as cute
from basedsl_cute.lowering.ptx.ptxas import find_nvdisasm
from basedsl_cute.lowering.ptx.sass import disassemble
from basedsl_cute.ops.blackwell import config as model
from basedsl_cute.ops.blackwell.gemm import gemm
from basedsl_cute.runtime import from_dlpack

ARCHITECTURES = ("sm_100a", "sm_103a")
PROBLEMS = (4096, 8192)
TYPES = {"fp16": 16, "fp8": 8, "nvfp4": 4}  # nvfp4: the time of the tensor cores, no such kernel
_ADDRESS = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_JUMP = re.compile(r"BRA.*`\((\.L_x_\d+)\)")


def compiled(cfg, arch):
    a, b, c = (np.zeros((256, 256, 1), np.float16) for _ in range(3))
    tensors = [
        from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1) for x in (a, b, c)
    ]
    return cute.compile(gemm, *tensors, 4, cfg, options=f"--arch {arch}")


def main_loop(sass):
    """The instructions of the innermost loop with matrix instructions, counted by name."""
    lines, labels = [], {}
    for line in sass.splitlines():
        label = _LABEL.match(line.strip())
        if label:
            labels[label[1]] = len(lines)
        elif _ADDRESS.search(line):
            lines.append(line)
    first = next(i for i, line in enumerate(lines) if "MMA" in line)
    loops = []
    for i, line in enumerate(lines):
        jump = _JUMP.search(line)
        if jump and labels.get(jump[1], i + 1) <= first <= i:
            loops.append((i - labels[jump[1]], labels[jump[1]], i))
    _, begin, end = min(loops)
    return Counter(_ADDRESS.search(line)[1] for line in lines[begin : end + 1])


def name(cfg):
    return f"{cfg.tile[0]} x {cfg.tile[1]}, {'pair' if cfg.pair else 'one block'}"


def resources():
    print("## What ptxas says\n")
    print("| tile | target | registers | spills (bytes) | local (bytes) | shared memory (bytes) |")
    print("|---|---|---|---|---|---|")
    loops = []
    for cfg in model.CANDIDATES:
        for arch in ARCHITECTURES:
            made = compiled(cfg, arch)
            (kernel,) = made.resources.values()
            spills = kernel.spill_stores + kernel.spill_loads
            shared = kernel.static_smem + kernel.dynamic_smem
            print(
                f"| {name(cfg)} | {arch} | {kernel.registers} | {spills} | {kernel.local} "
                f"| {shared} |"
            )
            if arch == ARCHITECTURES[0] and find_nvdisasm() is not None:
                loops.append((cfg, main_loop(disassemble(made.__cubin__, "-c"))))
    if loops:
        print("\n## The main loop\n")
        print(
            "| tile | instructions | matrix instructions | issue slots for each | most frequent |"
        )
        print("|---|---|---|---|---|")
    for cfg, counts in loops:
        total = sum(counts.values())
        products = sum(n for op, n in counts.items() if "MMA" in op)
        often = ", ".join(f"{op} {n}" for op, n in counts.most_common(6))
        print(f"| {name(cfg)} | {total} | {products} | {total / products:.1f} | {often} |")


def paper():
    print("\n## On paper\n")
    print(
        "Microseconds of a product, the part of the tensor cores' peak, and what bounds a tile.\n"
    )
    print(
        "| problem | type | tile | tensor cores, loads, epilogue (cycles) | bound | us | of peak |"
    )
    print("|---|---|---|---|---|---|---|")
    for n in PROBLEMS:
        for kind, bits in TYPES.items():
            cfg = model.choose_config(n, n, n, bits)
            tile = model.tile_time(cfg, n, bits)
            seconds = model.gemm_seconds(cfg, n, n, n, bits)
            peak = n**3 / (model.MACS_PER_CYCLE[bits] * model.CLOCK * model.MULTIPROCESSORS)
            parts = ", ".join(f"{x:.0f}" for x in tile)
            print(
                f"| {n}^3 | {kind} | {name(cfg)} | {parts} | {tile.bound} | {seconds * 1e6:.0f} "
                f"| {peak / seconds:.0%} |"
            )


def main():
    print("# The Blackwell GEMM without a GPU\n")
    print("`python bench/blackwell_model.py` wrote this. Nothing here was measured on a GPU.\n")
    resources()
    paper()


if __name__ == "__main__":
    main()
