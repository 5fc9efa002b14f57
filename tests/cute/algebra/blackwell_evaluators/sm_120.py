"""Evaluators of the matrix instructions of GeForce Blackwell (sm_120)."""

from __future__ import annotations

import re
from typing import Any

from basedsl_cute import algebra as cute

from .common import Args, op
from .matrix_instructions import BITS, tiled_mma


def sm120_atom(name: str) -> cute.MmaAtomLayout:
    return cute.mma_atom(re.sub(r"<.*", "", name))


@op("sm120_tiled_mma")
def _(a: Args) -> Any:
    atom = sm120_atom(a["atom"])
    return tiled_mma(cute.make_mma_tiling(atom, a["atom_layout"], a["permutation"]))


def warp_mma(a: Args) -> dict[str, Any]:
    atom = sm120_atom(a["atom"])
    k = atom.shape_mnk[2]
    return {
        "shape_mnk": atom.shape_mnk,
        "thr_id": atom.thr_id,
        **{f"layout_{x}_TV": getattr(atom, f"tv_layout_{x}") for x in "ABC"},
        "val_A_bits": 256 // k,
        "val_B_bits": 256 // k,
        "val_C_bits": BITS[a["c_type"]],
    }


@op("sm120_mma_atom")
def _(a: Args) -> Any:
    return warp_mma(a)


@op("sm120_mma_block_scaled_atom")
def _(a: Args) -> Any:
    atom = sm120_atom(a["atom"])
    registers = {x: cute.size(getattr(atom, f"tv_layout_{x}"), 1) for x in "ABC"}
    bits = 256 // atom.shape_mnk[2]
    return {
        **warp_mma(a),
        "sf_vec": a["sf_vec"],
        "layout_SFA_TV": cute.warp_scales(atom, "SFA"),
        "layout_SFB_TV": cute.warp_scales(atom, "SFB"),
        "val_SF_bits": 8,
        "regs_A": registers["A"] * bits // 32,
        "regs_B": registers["B"] * bits // 32,
        "regs_C": registers["C"],
        "regs_D": registers["C"],
        "regs_SFA": 1,
        "regs_SFB": 1,
    }
