"""The grouped product of the examples as a kernel of `random_cases`: C in blocks, a group for each.

Rows and columns of one product are cut at random places, and each block of C is a group with its
rows of A and of B. Blocks differ in their extents, some are empty, and together they are the whole.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from random_cases import BF16, F16, Case, Dice, cute_type, drawn

import basedsl_cute as cute
from basedsl_cute.sim import reachable
from basedsl_cute.utils.layout_enum import LayoutEnum
from basedsl_cute.utils.tensormap_manager import TensorMapUpdateMode

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "cute"))

import hopper_grouped_gemm as grouped


class Grouped:
    """`examples/cute/hopper_grouped_gemm.py`."""

    def draw(self, d: Dice, name: str, small: bool) -> Case:
        consumers = d.one(1, 2)
        kind = d.one(F16, BF16)
        options = {
            "tile": (64 * consumers, d.one(64, 128), d.one(32, 64)),
            "stages": d.number(2, 4),
            "consumers": consumers,
            "update": d.one(TensorMapUpdateMode.SMEM, TensorMapUpdateMode.GMEM),
        }
        turned = (d.one(True, False), d.one(True, False), False)
        smallest = (200, 200, 100)
        case = drawn(d, name, small, (kind, kind, kind), options, turned, smallest)
        m, n, k = case.shape
        n = -(-n // 8) * 8
        # Blocks begin at multiples of 16 bytes, and where C is contiguous, end there.
        rows = sorted(d.number(0, m) // 8 * 8 for _ in range(d.number(0, 5)))
        columns = sorted(d.number(0, n) // 8 * 8 for _ in range(d.number(0, 3)))
        options["cuts"] = (0, *rows, m), (0, *columns, n)
        return Case(
            name, (m, n, k), None, case.types, turned, case.gaps, "none", case.blocks, options
        )

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        options = {name: x for name, x in case.options.items() if name != "cuts"}
        config = grouped.Config(**options)
        rows, columns = (list(itertools.pairwise(cut)) for cut in case.options["cuts"])
        triples = [(a[i:j], b[p:q], c[i:j, p:q]) for i, j in rows for p, q in columns]
        maps = grouped.aligned((case.blocks, config.maps, 16), np.int64)
        row, column = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
        majors = [column if turned else row for turned in case.transposed[:2]]
        tables = grouped.tables(triples)
        chosen = (cute_type(case.types[0]), *majors, config)
        if cute.target_description().startswith("the CPU simulator"):
            with reachable(*(x for triple in triples for x in triple if x.size)):
                grouped.grouped_gemm(*tables, maps, *chosen)
        else:
            on_gpu(tables, maps, (a, b, c), chosen)


def on_gpu(tables: Any, maps: Any, arrays: Any, chosen: Any) -> None:
    """With everything copied to the GPU, addresses too, and C copied back."""
    import torch

    sizes, strides, addresses = tables
    moved = addresses.copy()
    copies = []
    for operand, x in enumerate(arrays):
        whole = x.base.reshape(-1).view(np.uint8)
        copies.append((whole, torch.from_numpy(whole).cuda()))
        moved[:, operand] += copies[-1][1].data_ptr() - whole.ctypes.data
    described = [torch.from_numpy(x).cuda() for x in (sizes, strides, moved, maps)]
    grouped.grouped_gemm(*described, *chosen)
    cute.synchronize()
    whole, copy = copies[2]
    whole[:] = copy.cpu().numpy()
