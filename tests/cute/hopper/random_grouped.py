"""Grouped products as a kernel of `random_cases`: C in blocks, a group for each.

Rows and columns of one product are cut at random places, and each block of C is a group with its
rows of A and of B. Blocks differ in their extents, some are empty, and together they are the whole.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from random_cases import Case, Dice, Hopper, cute_type

import basedsl_cute as cute
from basedsl_cute.ops.hopper import grouped_gemm as grouped
from basedsl_cute.sim import reachable
from basedsl_cute.utils.layout_enum import LayoutEnum
from basedsl_cute.utils.tensormap_manager import TensorMapUpdateMode

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "cute"))

from hopper_grouped_gemm import aligned


class Grouped(Hopper):
    """`ops.hopper.grouped_gemm`."""

    def draw(self, d: Dice, name: str, small: bool) -> Case:
        case = super().draw(d, name, small)
        cuts = []
        for which, extent, most in ((0, case.shape[0], 5), (1, case.shape[1], 3)):
            # TMA loads what begins at a multiple of 16 bytes.
            unit = 16 // case.types[which].itemsize if case.transposed[which] else 1
            places = sorted(d.number(0, extent) // unit * unit for _ in range(d.number(0, most)))
            cuts.append((0, *places, extent))
        update = d.one(TensorMapUpdateMode.SMEM, TensorMapUpdateMode.GMEM)
        options = case.options | {"cuts": tuple(cuts), "update": update, "swap": False}
        return replace(case, batches=None, epilogue="none", options=options)

    def whole_rows(self, case: Case) -> Case:
        """C may have any rows: what TMA does not store is stored otherwise."""
        return case

    def config(self, case: Case) -> Any:
        return grouped.Config(
            **{name: x for name, x in case.options.items() if name not in ("cuts", "update")}
        )

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        config = self.config(case)
        rows, columns = (list(itertools.pairwise(cut)) for cut in case.options["cuts"])
        triples = [(a[i:j], b[p:q], c[i:j, p:q]) for i, j in rows for p, q in columns]
        maps = aligned((case.blocks, grouped.maps_of(config), 16), np.int64)
        row, column = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
        majors = [column if turned else row for turned in case.transposed]
        tables = grouped.tables(triples)
        kinds = grouped.HopperGemmKinds(*map(cute_type, case.types), *majors)
        chosen = (kinds, config, case.options["update"])
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
