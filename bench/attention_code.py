"""Registers, spills and compile times of the attention kernels, by ptxas, without a GPU.

    python bench/attention_code.py [--only TEXT] [--repeat N] [--out rows.json]

Each row is one kernel for sm_90a, compiled in a process of its own without a disk cache: the
forward pass of Hopper with the tiles that `ops.attention` takes, and those by mma.sync. `warps` of
the 64 that a multiprocessor has room for are there at a time (occupancy). `cold` is the time from
the call to the machine code, with MLIR and LLVM loaded in it, after the program's imports;
`processor` is the processor time of it, ptxas included; `again` is the time of a second compilation
in the same process. All are seconds, medians of N processes (1).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.variant import Variant
from basedsl_cute.ops.hopper import attention as hopper


def kernels() -> list[tuple[str, int, int | None, Any]]:
    """Each row's kind, extent of the heads, keys to the right that are seen, and configuration."""
    rows: list[tuple[str, int, int | None, Any]] = []
    for head, configs in flash.HOPPER_CONFIGS.items():
        for right, config in zip((0, None), configs, strict=False):
            rows.append(("hopper", head, right, config))
    for head in (64, 128, 256):
        tile = (64, 64 if head <= 128 else 32)
        rows.append(("ampere", head, 0, ampere.Config(tile)))
    return rows


def processor_seconds() -> float:
    return sum(
        used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN))
    )


def compiled(head: int, right: int | None, config: Any) -> tuple[Any, float, float]:
    """The compiled code, and how long it took by the clock and the processor."""
    x = np.zeros((4, 2, 256, head), np.float16).transpose(2, 3, 1, 0)
    lse = np.zeros((4, 2, 256), np.float32).transpose(2, 1, 0)
    begun, used = perf_counter(), processor_seconds()
    code = cute.compile(
        flash._launch,
        *(x, x, x, x, lse, None, None, None),
        *((None,) * 4, (None, None, None), (), (None,) * 3),
        *(1.0, 1.0, 1, 256, 132, head, head, Variant(right=right), config, False, 0),
        options="--gpu-arch sm_90a",
    )
    return code, perf_counter() - begun, processor_seconds() - used


def row(kind: str, head: int, right: int | None, config: Any) -> dict[str, Any]:
    """Compile a kernel twice: its resources, and the seconds of each."""
    code, cold, used = compiled(head, right, config)
    _, again, _ = compiled(head, right, config)
    (kernel,) = code.resources.values()
    smem = config.smem_bytes(head, head)
    return {
        "kernel": kind,
        "head": head,
        "causal": "yes" if right == 0 else "no",
        "tile": str(config.tile),
        "registers": kernel.registers,
        "spilled": kernel.spills,
        "smem": smem,
        "warps": kernel.occupancy(config.threads, smem).warps,
        "cold": cold,
        "processor": used,
        "again": again,
    }


TIMES = ("cold", "processor", "again")


def median_row(command: list[str], repeat: int) -> dict[str, Any]:
    """Run a row in processes of its own, one after the other, for medians of its times."""
    environment = os.environ | {"BASEDSL_CACHE": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = []
    for _ in range(repeat):
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        runs.append(json.loads(done.stdout))
    return runs[0] | {name: statistics.median(run[name] for run in runs) for name in TIMES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help='rows that begin so, as in "hopper 128"')
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="processes a row (1)")
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    found = kernels()
    if options.row is not None:
        hopper.forward_kernel, ampere.forward  # noqa: B018 - imported, as a program's modules are
        print(json.dumps(row(*found[options.row])))
        return
    rows: list[dict[str, Any]] = []
    for number, (kind, head, _, _) in enumerate(found):
        if not f"{kind} {head}".startswith(options.only):
            continue
        command = [sys.executable, __file__, "--row", str(number)]
        rows.append(median_row(command, options.repeat))
        if len(rows) == 1:
            print(f"| {' | '.join(rows[0])} |\n{'|---' * len(rows[0])}|")
        shown = [f"{x:.2f}" if isinstance(x, float) else str(x) for x in rows[-1].values()]
        print(f"| {' | '.join(shown)} |", flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
