"""The Blackwell GEMMs without a GPU: what ptxas says of them, their main loops, a model on paper,
and beside it what the simulator counts and the schedule that it saw.

    python bench/blackwell_model.py > bench/results/DATE-blackwell-paper.md

The model takes published rates (`ops.blackwell.config`), the machine code needs nvdisasm (the
package nvidia-cuda-nvdisasm). With a GPU, `make gpu-bench` measures kernels against cuBLAS.
"""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
from blackwell_timeline import print_schedule, schedule

import basedsl_cute as cute
from basedsl_cute.lowering.ptx.ptxas import find_nvdisasm
from basedsl_cute.lowering.ptx.sass import disassemble
from basedsl_cute.ops.blackwell import config as model
from basedsl_cute.ops.blackwell import grouped_gemm as grouped
from basedsl_cute.ops.blackwell.block_scaled import block_scaled_gemm
from basedsl_cute.ops.blackwell.gemm import gemm
from basedsl_cute.ops.blackwell.quantize import FORMATS, scale_bytes
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim import profile
from basedsl_cute.utils import LayoutEnum

ARCHITECTURES = ("sm_100a", "sm_103a")
PROBLEMS = (4096, 8192)
TYPES = {"fp16": 16, "fp8": 8, "mxfp8": 8, "nvfp4": 4}
SCALED = ("nvfp4", "mxfp8")
_ADDRESS = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_JUMP = re.compile(r"BRA.*`\((\.L_x_\d+)\)")


def zeros(*shape, dtype=np.uint8, by=256):
    """A tensor at a multiple of 256 bytes, of dynamic extents."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + by, np.uint8)
    at = -raw.ctypes.data % by
    x = raw[at : at + size].view(dtype).reshape(shape)
    if len(shape) == 1:
        return from_dlpack(x, assumed_align=128)
    return from_dlpack(x[..., None], assumed_align=16).mark_layout_dynamic(leading_dim=1)


def dense(cfg, m, n, k):
    """The function and its arguments for C (M, N) of Float16."""
    shapes = ((m, k), (n, k), (m, n))
    return gemm, (*(zeros(*shape, dtype=np.float16) for shape in shapes), 4, cfg)


def scaled(form, cfg, m, n, k):
    """The same for block-scaled operands."""
    width = k * FORMATS[form].element.width // 8
    operands = []
    for rows in (m, n):
        operands += [zeros(rows, width), zeros(scale_bytes(rows, k, form))]
    return block_scaled_gemm, (*operands, zeros(m, n, dtype=np.float16), 4, (form, form), cfg)


def groups(cfg):
    """The same for groups, whose extents are not known."""
    row, f16 = LayoutEnum.ROW_MAJOR, cute.Float16
    x = np.zeros((64, 64), np.float16)
    maps = np.zeros((4 * grouped.MAPS + 1, 16), np.int64)
    maps = maps.reshape(-1)[-maps.ctypes.data % 128 // 8 :][: 4 * grouped.MAPS * 16]
    kinds = model.BlackwellGemmKinds(f16, f16, f16, row, row, row, cute.Float32)
    cfg = replace(cfg, dynamic=False)
    return grouped.grouped_gemm, (
        *grouped.tables([(x, x, x)]), maps.reshape(4, grouped.MAPS, 16), kinds, cfg
    )  # fmt: skip


def kernels():
    """Each kernel with a configuration: its name, the function and arguments."""
    for cfg in model.CANDIDATES:
        yield f"fp16, {name(cfg)}", *dense(cfg, 256, 256, 256)
    for form in SCALED:
        for cfg in model.SCALED:
            yield f"{form}, {name(cfg)}", *scaled(form, cfg, 256, 256, 256)
    for cfg in model.CANDIDATES[:2]:
        yield f"grouped fp16, {name(cfg)}", *groups(cfg)


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
    print(
        "| kernel | target | registers | spills (bytes) | local (bytes) | shared memory (bytes) |"
    )
    print("|---|---|---|---|---|---|")
    loops = []
    for title, function, given in kernels():
        for arch in ARCHITECTURES:
            made = cute.compile(function, *given, options=f"--arch {arch}")
            (kernel,) = made.resources.values()
            spills = kernel.spill_stores + kernel.spill_loads
            shared = kernel.static_smem + kernel.dynamic_smem
            print(
                f"| {title} | {arch} | {kernel.registers} | {spills} | {kernel.local} | {shared} |"
            )
            if arch == ARCHITECTURES[0] and find_nvdisasm() is not None:
                loops.append((title, main_loop(disassemble(made.__cubin__, "-c"))))
    if loops:
        print("\n## The main loop\n")
        print(
            "| kernel | instructions | matrix instructions | issue slots for each | local memory "
            "| most frequent |"
        )
        print("|---|---|---|---|---|---|")
    for title, counts in loops:
        total = sum(counts.values())
        products = sum(n for op, n in counts.items() if "MMA" in op)
        local = sum(n for op, n in counts.items() if op in ("LDL", "STL"))
        often = ", ".join(f"{op} {n}" for op, n in counts.most_common(6))
        print(f"| {title} | {total} | {products} | {total / products:.1f} | {local} | {often} |")


def counted():
    """The simulator's counts of a product of four tiles beside those that the model assumes."""
    print("\n## What the simulator counts\n")
    print(
        "Products of two by two tiles and 512 of K: the bytes that TMA brings to shared memory, "
        "those that the model loads for A, B and scale factors, and the "
        "operations of the tensor cores beside 2 M N K.\n"
    )
    print("| kernel | TMA to shared memory | model | operations | 2 M N K |")
    print("|---|---|---|---|---|")
    k = 512
    for form, cfg in [("fp16", model.CANDIDATES[0]), ("fp16", model.CANDIDATES[2])] + [
        (form, cfg) for form in SCALED for cfg in (model.SCALED[0], model.SCALED[2])
    ]:
        m, n = 2 * cfg.tile[0], 2 * cfg.tile[1]
        function, given = dense(cfg, m, n, k) if form == "fp16" else scaled(form, cfg, m, n, k)
        total = profile(function, *given).kernel.total
        vector = FORMATS[form].vector if form in SCALED else 0
        tile = model.tile_time(cfg, k, TYPES[form], vector=vector)
        wanted = 4 * cfg.blocks * tile.loads * model.L2_BYTES_PER_CYCLE
        stored = m * n * 2
        print(
            f"| {form}, {name(cfg)} | {total.tma_bytes - stored} | {wanted:.0f} "
            f"| {total.tensor_flops:.0f} | {2 * m * n * k} |"
        )


def timeline():
    """The schedule of tiles that one block computes, beside the model's."""
    print("\n## The schedule that the simulator saw\n")
    print(
        "One block computes four tiles, one after another; cycles since its launch. "
        "What its warps did on the simulator is replayed on a modelled multiprocessor of sm_100a, "
        "alone with its share of L2. A tile's accumulators are in one half of tensor memory while "
        "the other one is multiplied into. The spans of loads and products have the waits in "
        "them.\n"
    )
    for form, cfg, k in (
        ("fp16", model.CANDIDATES[2], 1024),
        ("fp16", model.CANDIDATES[2], 2048),
        ("mxfp8", model.SCALED[2], 2048),
        ("nvfp4", model.SCALED[2], 4096),
    ):
        alone = replace(cfg, dynamic=False)
        m, n = 4 * alone.tile[0], alone.tile[1]
        if form == "fp16":
            function, (*given, _, _) = dense(alone, m, n, k)
            given += [1, alone]
        else:
            function, (*given, _, forms, _) = scaled(form, alone, m, n, k)
            given += [1, forms, alone]
        vector = FORMATS[form].vector if form in SCALED else 0
        stored = alone.tile[0] * n * 2
        tiles = schedule(function, given, 4, stored)
        stores = stored / model.L2_BYTES_PER_CYCLE
        paper = model.tile_time(alone, k, TYPES[form], vector=vector)
        print_schedule(f"{form}, {name(cfg)}, K = {k}", tiles, paper, stores)


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
            candidates = model.SCALED if kind in SCALED else model.CANDIDATES
            vector = FORMATS[kind].vector if kind in SCALED else 0
            cfg = model.choose_config(n, n, n, bits, candidates=candidates, vector=vector)
            tile = model.tile_time(cfg, n, bits, vector=vector)
            seconds = model.gemm_seconds(cfg, n, n, n, bits, vector=vector)
            peak = n**3 / (model.MACS_PER_CYCLE[bits] * model.CLOCK * model.MULTIPROCESSORS)
            parts = ", ".join(f"{x:.0f}" for x in tile)
            print(
                f"| {n}^3 | {kind} | {name(cfg)} | {parts} | {tile.bound} | {seconds * 1e6:.0f} "
                f"| {peak / seconds:.0%} |"
            )


def main():
    print("# The Blackwell GEMMs without a GPU\n")
    print("`python bench/blackwell_model.py` wrote this. Nothing here was measured on a GPU.\n")
    resources()
    paper()
    counted()
    timeline()


if __name__ == "__main__":
    main()
