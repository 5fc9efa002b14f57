"""Instructions of the attention kernels' main loops, by nvdisasm, without a GPU.

    python bench/attention_loop.py [--only TEXT]

Each row is one kernel without a mask, and the loop over its tiles of keys: how many instructions a
warp has in it for each key of a tile, and for each kind how many in all. Blocks that are seldom run
count, too: FSEL and ISETP hide the last tile's keys behind the end, by mma.sync most FMUL scale
sums where scores grow by much, and FMNMX compare negative scores where VIMNMX3 do the others.
"program" is `tests/cute/programs/attention.py`, "by products" sums weights of 8 bits by products
with ones. nvdisasm must be on the PATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.turn import BLOCK
from basedsl_cute.ops.flash.variant import Variant
from basedsl_cute.runtime import from_dlpack

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "cute" / "programs" / "attention.py"
FLOAT8 = ml_dtypes.float8_e4m3fn
KINDS = ("HMMA", "HGMMA", "QGMMA", "MUFU", "FFMA", "FADD", "FMUL", "FMNMX", "VIMNMX3", "FSEL",
         "ISETP", "F2FP", "LDSM", "LDGSTS", "SHFL", "BAR", "LDL", "STL")  # fmt: skip
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)[^;]*;")
LABEL = re.compile(r"^\s*(\.L\w+):")
BRANCH = re.compile(r"BRA\S*\s.*`\((\.L\w+)\)")


def compiled(head: int, config: Any, arch: str, dtype: Any = np.float16) -> Any:
    """The code of `ops.attention` for a configuration."""
    x = np.zeros((4, 2, 256, head), dtype).transpose(2, 3, 1, 0)
    lse, out, turned = np.zeros((4, 2, 256), np.float32).transpose(2, 1, 0), x, None
    if dtype is FLOAT8:
        out = np.zeros((4, 2, 256, head), np.float16).transpose(2, 3, 1, 0)
        turned = np.zeros((4, 2, head, 256), dtype).transpose(2, 3, 1, 0)
        if config.in_blocks:
            blocks = -(-256 // config.tile[1]) * config.tile[1] // BLOCK
            turned = np.zeros((4, 2, blocks, BLOCK * head), dtype).transpose(3, 2, 1, 0)
    return cute.compile(
        flash._launch,
        *(x, x, x, out, lse, None, None, turned),
        *((None,) * 4, (None, None, None), (), (None,) * 3),
        *(1.0, 1.0, 1, 256, 132, head, head, Variant(), config, False, 0),
        options=f"--gpu-arch {arch}",
    )


def program(arch: str) -> Any:
    """The code of the program with tiles of 128 queries and 64 keys."""
    spec = importlib.util.spec_from_file_location("attention_program", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    views = [
        from_dlpack(np.zeros((4, 4096, 128), np.float16).transpose(1, 2, 0), assumed_align=16)
        .mark_layout_dynamic(leading_dim=1)
        .mark_compact_shape_dynamic(mode=1, stride_order=(2, 0, 1), divisibility=8)
        for _ in range(4)
    ]
    kernel = module.Attention(128, rows=128, columns=64, warps=4)
    return cute.compile(kernel, *views, 0.1, options=f"--gpu-arch {arch}")


def rows() -> Iterator[tuple[str, int, int, Any]]:
    """Each row's name, keys of a tile, exponentials of a thread, and what compiles it."""
    for arch, config in (
        ("sm_80", flash._MANY_QUERIES),
        ("sm_90", flash._MANY_QUERIES),
        ("sm_90", replace(flash._MANY_QUERIES, tile=(128, 64))),
        ("sm_90", replace(flash._MANY_QUERIES, tile=(256, 64), warps=8, stages=3)),
        ("sm_120", flash._MANY_QUERIES_SM_100),
    ):
        m, n = config.tile
        yield (
            f"mma.sync 128 {config.tile} {arch}",
            n, m * n // config.threads,
            lambda config=config, arch=arch: compiled(128, config, arch),
        )  # fmt: skip
    for arch in ("sm_80", "sm_90", "sm_120"):
        yield f"program 128 (128, 64) {arch}", 64, 64, lambda arch=arch: program(arch)
    for head in (64, 128, 256):
        wide, narrow = flash.HOPPER_CONFIGS[head][1], flash.NARROW_CONFIGS[head][0]
        kinds = [("wgmma", wide, np.float16), ("8 bits", narrow, FLOAT8)]
        kinds.append(("8 bits by products", flash.NARROW_BY_PRODUCTS[head][0], FLOAT8))
        for kind, config, dtype in kinds:
            n = config.tile[1]
            yield (
                f"{kind} {head} {config.tile}", n, n // 2,
                lambda head=head, config=config, dtype=dtype: compiled(
                    head, config, "sm_90a", dtype
                ),
            )  # fmt: skip


def main_loop(text: str, exponentials: int) -> Counter[str]:
    """The instructions of the smallest loop with most of a tile's exponentials."""
    code: list[str] = []
    labels: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    for line in text.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(code)
        elif found := INSTRUCTION.search(line):
            code.append(found[2])
            branch = BRANCH.search(line)
            if branch is not None and branch[1] in labels:
                loops.append((labels[branch[1]], len(code)))
    counts = [Counter(code[first:end]) for first, end in loops]
    return min((x for x in counts if x["MUFU"] > 0.8 * exponentials), key=Counter.total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose names contain this")
    options = parser.parse_args()
    print("| kernel | registers | spilled | a key | " + " | ".join(KINDS) + " |")
    print("|---" * (len(KINDS) + 4) + "|")
    for name, keys, exponentials, compile_row in rows():
        if options.only not in name:
            continue
        code = compile_row()
        kernel = max(code.resources.values(), key=lambda x: x.registers)
        loop = main_loop(code.__sass__, exponentials)
        cells = [str(loop[kind]) for kind in KINDS]
        own = f"{kernel.registers} | {kernel.spills} | {loop.total() / keys:.2f}"
        print(f"| {name} | {own} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
