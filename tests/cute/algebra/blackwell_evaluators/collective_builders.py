"""Evaluators of the choices of CUTLASS's collective builders."""

from __future__ import annotations

import re
from typing import Any

from basedsl_cute import algebra as cute
from basedsl_cute.utils import blackwell_choices as choices

from .common import Args, op
from .matrix_instructions import BITS

ELEMENT_BITS = BITS | {"e2m3": 6, "e3m2": 6, "e2m1": 4}


def output(dtype: str, major: str) -> choices.EpilogueMatrix:
    return choices.EpilogueMatrix(ELEMENT_BITS[dtype], major == "M")


def load_name(shape: str, repeat: int, packed: bool) -> str:
    lanes, _, bits = shape.removesuffix("x2").partition("x")
    return f"SM100_TMEM_LOAD_{lanes}dp{bits}{repeat}x{'_16b' * packed}"


@op("sm100_tmem_load_op")
def _(a: Args) -> Any:
    found = choices.tmem_load(a["acc_bits"], output(a["d_type"], a["d_major"]), a["dp"])
    repeat = cute.widest_repeat(found[0], a["cols"] * a["acc_bits"])
    return {"op": load_name(found[0], repeat, found[1])}


MATRIX = {
    (16, 2, False): "U32x2_{}_N", (16, 4, False): "U32x4_{}_N", (16, 2, True): "U16x4_{}_T",
    (16, 4, True): "U16x8_{}_T",
}  # fmt: skip
ANY = "AutoVectorizingCopyWithAssumedAlignment<128>"


@op("sm100_smem_copy_ops")
def _(a: Args) -> Any:
    match = re.fullmatch(r"SM100_TMEM_LOAD_(16|32)dp(\d+)b(\d+)x(_16b)?", a["tmem_load_op"])
    shape = f"{match[1]}x{match[2]}b" + ("x2" if match.group(1, 2) == ("16", "32") else "")
    d = choices.EpilogueMatrix(a["d_bits"], a["d_major"] == "M")
    found = choices.matrix_store(a["acc_bits"], d, shape, int(match[3]), match[4] is not None)
    if found is None:
        return {"smem_store_op": ANY, "smem_load_op": ANY}
    if found.bits == 8:
        name = f"SM100_U8x{4 * found.matrices}_{{}}_T"
        load = name.format("LDSM") if found.matrices > 1 else ANY
        return {"smem_store_op": name.format("STSM"), "smem_load_op": load}
    name = MATRIX[found]
    return {
        "smem_store_op": f"SM90_{name}".format("STSM"),
        "smem_load_op": f"SM75_{name}".format("LDSM"),
    }


@op("sm100_epilogue_tile")
def _(a: Args) -> Any:
    c = None if a["c_type"] == "void" else output(a["c_type"], a["c_major"])
    tile = choices.epilogue_tile(
        a["cta_tile"][:2],
        a["tmem_warps"],
        output(a["d_type"], a["d_major"]),
        c,
        is_block_scaled=a["op_class"] == "BlockScaledTensorOp",
        scales_columns=bool(a["per_col_scale"]),
    )
    return {"epi_tile": tile, "epi_tile_shape": tuple(cute.size(x) for x in tile)}


def selected(atom: str, bits: int) -> dict[str, Any]:
    return {
        "atom": atom,
        "swizzle_bytes": cute.gmma_smem_swizzle(atom),
        "layout": cute.gmma_smem_atom(atom, bits).outer,
    }


@op("sm100_smem_selector")
def _(a: Args) -> Any:
    extents = (a["blk_mn"], a["blk_k"])
    return selected(cute.widest_smem_atom(a["major"] == "K", a["bits"], extents), a["bits"])


@op("sm100_epilogue_smem_atom")
def _(a: Args) -> Any:
    d = choices.EpilogueMatrix(a["bits"], a["d_major"] == "M")
    return selected(choices.epilogue_smem_atom(d, a["epi_tile"]), a["bits"])


@op("sm100_tmem_warps")
def _(a: Args) -> Any:
    blocks = 1 + a["two_sm"]
    m, n, k = a["mma_tile"]
    return {"tmem_warps": choices.tmem_warps(blocks, m), "cta_tile": (m // blocks, n, k)}


@op("sm100_tma_atoms")
def _(a: Args) -> Any:
    blocks, found = a["atom_thr"], {}
    for operand in ("A", "B", "SFB"):
        name = "SM90_TMA_LOAD" if blocks == 1 else "SM100_TMA_2SM_LOAD"
        many = choices.multicasts(a["cluster"][:2], blocks, operand)
        found[operand] = f"{name}_MULTICAST" if many else name
    return found


@op("sm100_stage_count")
def _(a: Args) -> Any:
    return {
        "stages": choices.operand_stages(
            a["capacity_bytes"], a["tile"], a["a_bits"], a["b_bits"], a["pipeline_bytes"],
            a["carveout_bytes"],
        )
    }  # fmt: skip


@op("sm100_epilogue_stages")
def _(a: Args) -> Any:
    found = choices.epilogue_stages(ELEMENT_BITS.get(a["c_type"]), a["epi_tiles"])
    return {
        "stages_c": found.c,
        "stages_d": found.d,
        "fragment_size": a["fragment_size"],
        "reuse_smem_c": int(found.reuses_c),
        "delay_tma_store": int(found.delays_store),
    }


@op("sm120_tile_n_permute")
def _(a: Args) -> Any:
    return {"permute_n": choices.sm120_columns(a["tile_n"])}


@op("sm120_smem_selector")
def _(a: Args) -> Any:
    atom = cute.widest_smem_atom(True, a["bits"], (8, a["blk_k"]))
    return {"atom": atom, "layout": cute.gmma_smem_atom(atom, a["bits"]).outer}


@op("sm120_smem_copy_ops")
def _(a: Args) -> Any:
    loads = choices.sm120_matrix_loads(a["a_type"], a["b_type"], a["tile_n"], bool(a["use_f8f6f4"]))
    names = [
        f"SM75_U32x{count}_LDSM_N" if bits is None else f"SM100_SU{bits}_DU8x16_x{count}_LDSM_N"
        for count, bits in loads
    ]
    return {"A": names[0], "B": names[1]}
