"""One evaluator for each Blackwell op of the vector file, in the notation of ``evaluators``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl_cute import algebra as cute
from basedsl_cute.algebra.layout import text
from basedsl_cute.hardware.tensor_memory import instruction_descriptor
from basedsl_cute.utils import blackwell_choices as choices

Args = dict[str, Any]
EVALUATORS: dict[str, Callable[[Args], Any]] = {}

LAYOUT_TYPES = {
    0: "SWIZZLE_NONE", 1: "SWIZZLE_128B_BASE32B", 2: "SWIZZLE_128B", 4: "SWIZZLE_64B",
    6: "SWIZZLE_32B",
}  # fmt: skip


def op(*names: str) -> Callable[[Callable[[Args], Any]], Callable[[Args], Any]]:
    def register(f: Callable[[Args], Any]) -> Callable[[Args], Any]:
        for name in names:
            EVALUATORS[name] = f
        return f

    return register


def arguments(record: dict[str, Any]) -> Args:
    """The arguments, those in CuTe's notation parsed."""

    def read(value: Any) -> Any:
        if isinstance(value, str) and re.match(r"\(|\d+:", value):
            return cute.parse(value)
        return value

    return {key: read(value) for key, value in record["args"].items()}


# Descriptors --------------------------------------------------------------------------------------


def fields_of(bits: int, places: dict[str, tuple[int, int]]) -> dict[str, int]:
    return {name: bits >> start & ((1 << width) - 1) for name, (start, width) in places.items()}


COMMON = {
    "sparse_id2": (0, 2), "sparse_flag": (2, 1), "a_format": (7, 3), "b_format": (10, 3),
    "a_negate": (13, 1), "b_negate": (14, 1), "a_major": (15, 1), "b_major": (16, 1),
    "n_dim": (17, 6), "m_dim": (24, 5),
}  # fmt: skip
DENSE = COMMON | {"saturate": (3, 1), "c_format": (4, 2), "max_shift": (30, 2)}
SCALED = COMMON | {
    "b_sf_id": (4, 2), "scale_format": (23, 1), "a_sf_id": (29, 2), "k_size": (31, 1)
}  # fmt: skip


def descriptor(a: Args, **more: Any) -> int:
    return instruction_descriptor(
        a["kind"],
        (a["a_type"], a["b_type"], a["c_type"]),
        (a["m"], a["n"]),
        mn_major=(a["a_major"] == "MN", a["b_major"] == "MN"),
        negate=(bool(a.get("a_negate")), bool(a.get("b_negate"))),
        **more,
    )


@op("umma_instr_desc")
def _(a: Args) -> Any:
    options = {"saturate": bool(a["saturate"]), "sparse": bool(a["sparse"])}
    options["max_shift"] = a["max_shift"]
    desc = descriptor(a, **options)
    runtime = descriptor(a, sparse_id=a["sparse_id2"], **options)
    return {
        "desc": desc,
        "desc_hex": f"0x{desc:08x}",
        "fields": fields_of(desc, DENSE),
        "runtime_desc": runtime,
        "runtime_low32": 0,
    }


@op("umma_instr_desc_block_scaled")
def _(a: Args) -> Any:
    options = {"sparse": bool(a["sparse"]), "scale_type": a["sf_type"]}
    ids = (a["sfa_tmem_addr"] >> 30, a["sfb_tmem_addr"] >> 30)
    desc = descriptor(a, **options)
    runtime = descriptor(a, sparse_id=a["sparse_id2"], scale_ids=ids, **options)
    return {
        "desc": desc,
        "desc_hex": f"0x{desc:08x}",
        "runtime_desc": runtime,
        "runtime_low32": 0,
        "fields": fields_of(runtime, SCALED),
    }


# Shared memory ------------------------------------------------------------------------------------


def points(layout: cute.ComposedLayout) -> list[int]:
    """The indices of a swizzled layout in colexicographic order."""
    shape, stride = (cute.flatten_to_tuple(x) for x in (layout.outer.shape, layout.outer.stride))
    plain = np.zeros(1, dtype=np.int64)
    for extent, step in zip(shape, stride, strict=True):
        plain = (plain + (np.arange(extent) * step)[:, None]).reshape(-1)
    swizzle = layout.inner
    moved: list[int] = (plain ^ (plain & swizzle.source_mask) >> swizzle.shift).tolist()
    return moved


def offsets(layout: cute.ComposedLayout) -> dict[str, Any]:
    values = points(layout)
    if len(values) <= 256:
        return {"offsets": values}
    digest = hashlib.sha256(",".join(str(v) for v in values).encode()).hexdigest()
    return {
        "offsets_len": len(values),
        "offsets_first64": values[:64],
        "offsets_sha256": digest,
    }


def swizzled(atom: str, layout: cute.ComposedLayout) -> Any:
    return {
        "swizzle_bytes": cute.gmma_smem_swizzle(atom),
        "layout": layout.outer,
        "swizzle_elems": layout.inner,
        **offsets(layout),
    }


@op("umma_smem_atom")
def _(a: Args) -> Any:
    return swizzled(a["atom"], cute.gmma_smem_atom(a["atom"], a["bits"]))


@op("umma_tile_to_shape")
def _(a: Args) -> Any:
    atom = cute.gmma_smem_atom(a["atom"], a["bits"])
    layout = cute.tile_to_shape(atom, a["shape"], a.get("order"))
    return swizzled(a["atom"], layout) | {"cosize": cute.cosize(layout)}


@op("umma_tile_to_mma_shape")
def _(a: Args) -> Any:
    atom = cute.gmma_smem_atom(a["atom"], a["bits"])
    tiled = cute.tile_to_mma_shape(atom, a["mma_tile_shape"], a.get("order"))
    return swizzled(a["atom"], tiled) | {"cosize": cute.cosize(tiled)}


def smem_fields(bits: int) -> dict[str, int]:
    return fields_of(
        bits,
        {
            "start_address": (0, 14), "leading_byte_offset": (16, 14),
            "stride_byte_offset": (32, 14), "version": (46, 2), "base_offset": (49, 3),
            "lbo_mode": (52, 1), "layout_type": (61, 3),
        },
    )  # fmt: skip


@op("umma_smem_desc")
def _(a: Args) -> Any:
    atom = cute.gmma_smem_atom(a["atom"], a["bits"])
    layout = cute.tile_to_shape(atom, a["shape"], a.get("order"))
    swizzle = cute.gmma_smem_swizzle(a["atom"])
    found = cute.operand_descriptor(layout.outer, swizzle, a["major"] == "K", a["bits"])
    bits = found.bits_at(a["start_address"])
    return {
        "desc": f"0x{bits:016x}",
        "lo": bits & 0xFFFFFFFF,
        "hi": bits >> 32,
        "fields": smem_fields(bits),
        "smem_layout": layout.outer,
        "swizzle_bytes": swizzle,
        "layout_type": LAYOUT_TYPES[found.mode],
    }


@op("umma_desc_tensor")
def _(a: Args) -> Any:
    tiling = cute.make_mma_tiling(cute.tcgen05_mma((a["m"], a["n"], a["k"]), a["cta_group"]))
    shape = tiling.partition_shape(a["operand"], a["tile"])
    atom = cute.gmma_smem_atom(a["atom"], a["bits"])
    layout = cute.tile_to_mma_shape(atom, (*shape, a["stages"]), a.get("order"))
    swizzle = cute.gmma_smem_swizzle(a["atom"])
    found = cute.operand_descriptor(layout.outer[0], swizzle, a["major"] == "K", a["bits"])
    steps = cute.descriptor_layout(layout, a["bits"])
    first = found.bits_at(a["start_address"])
    return {
        "mma_shape": shape,
        "smem_layout": layout.outer,
        "swizzle_bytes": swizzle,
        "desc_layout": steps,
        "descs": [f"0x{first + steps(i):016x}" for i in range(cute.size(steps))],
        "fields0": smem_fields(first),
    }


# Matrix instructions ------------------------------------------------------------------------------

BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "s8": 8, "u8": 8, "e4m3": 8,
    "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 8,
}  # fmt: skip
KINDS = {
    "TF32": "tf32", "F16BF16": "f16", "S8": "i8", "F8F6F4": "f8f6f4", "MXF8F6F4": "mxf8f6f4",
    "MXF4": "mxf4nvf4",
}  # fmt: skip


def kind_of(a: Args) -> str:
    return KINDS[a["atom"].removeprefix("SM100_MMA_").split("_")[0]]


def tiling_of(a: Args) -> cute.MmaTiling:
    atom = cute.tcgen05_mma((a["m"], a["n"], a["k"]), a["cta_group"])
    return cute.make_mma_tiling(
        atom, a.get("atom_layout", (1, 1, 1)), a.get("permutation", (None, None, None))
    )


def fragment_of(a: Args, operand: str) -> cute.TmemFragment | None:
    """The fragment in tensor memory of an operand; None for one in shared memory."""
    in_tmem = a["atom"].endswith("_TS")
    if operand == "C":
        return cute.accumulator_fragment(BITS[a["c_type"]], a["cta_group"], in_tmem)
    if operand == "A" and in_tmem:
        return cute.tmem_operand_fragment(BITS[a["a_type"]], a["cta_group"])
    return None


def describe(a: Args, operand: str) -> str:
    found = fragment_of(a, operand)
    if found is None:
        return f"smem_desc<{a[operand.lower() + '_major']}>"
    return (
        f"tmem_frg value_bits={found.bits} storage_bits={found.storage_bits} n_sm={found.blocks} "
        f"alloc={found.allocation}"
    )


@op("umma_mma_atom")
def _(a: Args) -> Any:
    atom = cute.tcgen05_mma((a["m"], a["n"], a["k"]), a["cta_group"])
    return {
        "shape_mnk": atom.shape_mnk,
        "thr_id": atom.thr_id,
        **{f"layout_{x}_TV": getattr(atom, f"tv_layout_{x}") for x in "ABC"},
        **{f"frg_{x}": describe(a, x) for x in "ABC"},
        "idesc": descriptor(a | {"kind": kind_of(a)}, scale_type=a.get("sf_type")),
    }


@op("umma_tiled_mma")
def _(a: Args) -> Any:
    return tiled_mma(tiling_of(a))


def tiled_mma(mma: cute.MmaTiling) -> Any:
    return {
        "tile_shape": mma.tile_shape_mnk,
        "thr_layout_vmnk": mma.thr_layout_vmnk,
        "size": mma.size,
        **{f"layout_{x}_TV": mma.tv_layout_tiled(x) for x in "ABC"},
    }


def operand_shapes(mnk: tuple[int, int, int]) -> dict[str, tuple[int, int]]:
    m, n, k = mnk
    return {"A": (m, k), "B": (n, k), "C": (m, n)}


@op("umma_partition_shape")
def _(a: Args) -> Any:
    mma, shapes = tiling_of(a), operand_shapes(a["mnk"])
    return {
        **{f"partition_shape_{x}": mma.partition_shape(x, s) for x, s in shapes.items()},
        **{f"thrfrg_{x}": mma.thrfrg(x, cute.make_layout(s)) for x, s in shapes.items()},
    }


@op("umma_partition_coords")
def _(a: Args) -> Any:
    mma, result = tiling_of(a), {"threads": int(tiling_of(a).size)}
    for operand, shape in operand_shapes(a["mnk"]).items():
        identity = cute.make_identity_layout(shape)
        parts = [mma.partition(operand, identity, v) for v in range(result["threads"])]
        result[f"layout_{operand}"] = parts[0][0]
        result[f"start_{operand}"] = [
            text(cute.add_offset((0, 0), start)) for _, start in parts
        ]  # fmt: skip
    return result


def fragment(layout: cute.Layout, bits: int) -> dict[str, Any]:
    return {
        "shape": layout.shape,
        "tmem_layout": layout,
        "columns": cute.tmem_columns(layout, bits),
        "elem_bits": bits,
    }


@op("umma_tmem_frag_C")
def _(a: Args) -> Any:
    shape = tiling_of(a).partition_shape("C", a["mn"])
    shape = (*shape, a["stages"]) if a["stages"] else shape
    return fragment(fragment_of(a, "C").layout(shape), BITS[a["c_type"]])


@op("umma_tmem_frag_A")
def _(a: Args) -> Any:
    shape = tiling_of(a).partition_shape("A", a["mk"])
    shape = (*shape, a["stages"]) if a["stages"] else shape
    return fragment(fragment_of(a, "A").layout(shape), BITS[a["a_type"]])


def without_shape(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "shape"}


@op("tmem_frg")
def _(a: Args) -> Any:
    mode = cute.TmemAllocation(a["alloc_mode"])
    found = cute.TmemFragment(a["value_bits"], a["storage_bits"], a["n_sm"], mode)
    return without_shape(fragment(found.layout(a["shape"]), a["value_bits"]))


@op("tmem_frg_ws")
def _(a: Args) -> Any:
    layout = cute.tmem_fragment_ws(a["shape"], a["value_bits"], a["storage_bits"])
    return without_shape(fragment(layout, a["value_bits"]))


@op("tmem_sf_frg")
def _(a: Args) -> Any:
    mode = cute.TmemAllocation(a["alloc_mode"])
    return without_shape(fragment(cute.scale_fragment(a["shape"], a["side"], mode), 8))


@op("tmem_ptr_add")
def _(a: Args) -> Any:
    address = cute.tmem_address(a["base"], a["offset"], a["value_bits"])
    return {
        "addr": f"0x{address:08x}",
        "col": address & 0xFFFF,
        "dp": address >> 16 & 0xFF,
        "idx": address >> 24,
        "dp_stride": cute.lane_stride(a["value_bits"]),
    }


# Copies -------------------------------------------------------------------------------------------


def tv_layouts(atom: cute.CopyAtomLayout) -> dict[str, Any]:
    return {
        "thr_id": atom.thr_id,
        "layout_src_TV": atom.layout_src_tv,
        "layout_dst_TV": atom.layout_dst_tv,
        "layout_ref_TV": atom.layout_ref_tv,
    }


def copy_atom(name: str) -> cute.CopyAtomLayout:
    known = re.match(r"SM100_(TMEM|UTCCP|LOAD|STORE)_", name)
    return cute.blackwell_copy_atom(name) if known else cute.copy_atom(name)


@op("tmem_copy_atom", "utccp_atom")
def _(a: Args) -> Any:
    atom = copy_atom(a["atom"])
    return {"val_id": atom.tmem, **tv_layouts(atom)}


@op("copy_atom_sm100")
def _(a: Args) -> Any:
    return tv_layouts(copy_atom(a["atom"]))


@op("tmem_copy_atom_elems")
def _(a: Args) -> Any:
    atom = copy_atom(a["atom"]).in_elements(a["dtype_bits"])
    return {
        **tv_layouts(atom),
        "num_val_src": cute.size(atom.layout_src_tv, 1),
        "num_val_dst": cute.size(atom.layout_dst_tv, 1),
    }


LD_ST = re.compile(r"SM100_TMEM_(LOAD|STORE)_(16|32)dp(\d+)b1x(_16b)?")


@op("tmem_op_repeater")
def _(a: Args) -> Any:
    match = LD_ST.fullmatch(a["base"])
    shape = f"{match[2]}x{match[3]}b" + ("x2" if match.group(2, 3) == ("16", "32") else "")
    repeat = cute.widest_repeat(shape, a["bits_n"])
    return {"op": a["base"].replace("b1x", f"b{repeat}x") if repeat else "void"}


def tiled_copy(copy: cute.CopyTiling) -> dict[str, Any]:
    return {
        "tiler_mn": copy.tiler_mn,
        "layout_tv": copy.layout_tv,
        "layoutS_TV": copy.layout_src_tv_tiled,
        "layoutD_TV": copy.layout_dst_tv_tiled,
        "size": copy.size,
    }


@op("tmem_copy")
def _(a: Args) -> Any:
    atom = copy_atom(a["copy_atom"])
    return tiled_copy(cute.make_tmem_copy(atom, a["dtype_bits"], a["tmem_layout"]))


@op("utccp_copy")
def _(a: Args) -> Any:
    copy = cute.make_cp_copy(copy_atom(a["copy_atom"]), a["dtype_bits"], a["tmem_layout"])
    return tiled_copy(copy) | {"partition_D": copy.partition("D", a["tmem_layout"], 0)[0]}


@op("tmem_warp_partitioner")
def _(a: Args) -> Any:
    tiler, layout_tv = cute.tmem_warp_partition(a["dtype_bits"], a["tmem_layout"])
    return {"tiler_mn": tiler, "layout_tv": layout_tv}


THREADS = (0, 1, 5, 16, 31, 32, 37, 63, 64, 77, 96, 127)


@op("tmem_copy_partition")
def _(a: Args) -> Any:
    bits, atom = a["dtype_bits"], copy_atom(a["copy_atom"])
    tiles = cute.flat_divide(a["acc_layout"], a["epi_tile"])
    copy = cute.make_tmem_copy(atom, bits, cute.make_layout((tiles[0], tiles[1])))
    tmem, registers = "DS" if "STORE" in a["copy_atom"] else "SD"
    identity = cute.make_identity_layout(cute.product_each(a["acc_layout"].shape))
    coords = cute.flat_divide(identity, a["epi_tile"])
    parts = [copy.partition(tmem, tiles, t) for t in THREADS]
    own = [copy.partition(registers, coords, t) for t in THREADS]
    return {
        "acc_epi_layout": tiles,
        "threads": list(THREADS),
        "tmem_partition": parts[0][0],
        "coord_partition_shape": own[0][0].shape,
        "coord_partition_stride": own[0][0].stride,
        "tmem_addr": [f"0x{cute.tmem_address(0, start, bits):08x}" for _, start in parts],
        "coords": [
            [
                text(cute.add_offset(cute.add_offset((0, 0), start), layout(i)))
                for i in range(min(16, cute.size(layout)))
            ]
            for layout, start in own
        ],
    }


# Scale factors ------------------------------------------------------------------------------------


@op("sf_atom")
def _(a: Args) -> Any:
    return {
        "blk_mn": cute.SCALE_ROWS,
        "blk_sf": cute.SCALE_COLUMNS,
        "sf_atom": cute.scale_atom(a["sf_vec"], a["major"] == "K"),
    }


def of_problem(shape: Any, modes: tuple[int, int]) -> Any:
    return (*(shape[i] for i in modes), *shape[3:])


@op("sf_gmem_layout")
def _(a: Args) -> Any:
    rows = {"SFA": 0, "SFB": 1}[a["side"]]
    layout = cute.tile_scales(of_problem(a["mnkl"], (rows, 2)), a["sf_vec"])
    return {
        "layout": layout,
        "cosize": cute.cosize(layout),
        "filtered_size": cute.cosize(cute.filter_zeros(layout)),
    }


@op("sfd_gmem_layout")
def _(a: Args) -> Any:
    layout = cute.tile_scales(of_problem(a["mnkl"], (0, 1)), a["sf_vec"], a["major"] == "K")
    return {"layout": layout, "cosize": cute.cosize(layout)}


@op("sf_tensor_layout")
def _(a: Args) -> Any:
    layout = cute.tile_scale_tensor(a["mnl"])
    return {"layout": layout, "cosize": cute.cosize(layout)}


def smem_scales(a: Args, stages: int | None = None) -> cute.Layout:
    m, n, k = a["tile_mnk"]
    rows = m // a["cta_group"] if a["side"] == "SFA" else n
    return cute.smem_scales(rows, k, a["sf_vec"], a["mma_k"], stages)


@op("sf_smem_layout")
def _(a: Args) -> Any:
    layout = smem_scales(a)
    filtered = cute.filter_zeros(layout)
    return {
        "layout": layout,
        "filter_zeros": filtered,
        "cosize": cute.cosize(layout),
        "size_filtered": cute.size(filtered),
    }


def tmem_scales(a: Args) -> cute.Layout:
    both = a["cta_group"] == 2 and a["mma_m"] == 128
    mode = cute.TmemAllocation.SCALES_2X2 if both else cute.TmemAllocation.SCALES_4X1
    return cute.scale_fragment(smem_scales(a).shape, a["side"], mode)


@op("sf_tmem_frag")
def _(a: Args) -> Any:
    layout = tmem_scales(a)
    compact = cute.filter_zeros(layout)
    return without_shape(fragment(layout, 8)) | {"compact_layout": compact}


@op("sf_utccp_copy")
def _(a: Args) -> Any:
    smem = smem_scales(a, a["stages"])
    compact, tmem = cute.filter_zeros(smem), cute.filter_zeros(tmem_scales(a))
    copy = cute.make_cp_copy(copy_atom(a["copy_atom"]), 8, tmem)
    source, _ = copy.partition("S", compact, 0)
    target, _ = copy.partition("D", tmem, 0)
    found, steps = cute.cp_descriptors(copy.atom, source, 8)
    first = found.bits_at(a["start_address"])
    rest = cute.Layout(steps.shape[1:], steps.stride[1:])
    places = cute.Layout(target.shape[1:], target.stride[1:])
    return {
        "smem_layout": smem,
        "smem_compact": compact,
        "tmem_compact": tmem,
        **tiled_copy(copy),
        "partition_S": source,
        "partition_D": target,
        "desc_layout": steps,
        "descs": [f"0x{first + rest(i):016x}" for i in range(cute.size(rest))],
        "tmem_addr": [
            f"0x{cute.tmem_address(0, places(i), 8):08x}" for i in range(cute.size(places))
        ],
        "fields0": smem_fields(first),
    }


# sm_120 -------------------------------------------------------------------------------------------


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


# Choices of the collective builders ---------------------------------------------------------------

ELEMENT_BITS = BITS | {"e2m3": 6, "e3m2": 6, "e2m1": 4}


def output(dtype: str, major: str) -> choices.Output:
    return choices.Output(ELEMENT_BITS[dtype], major == "M")


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
    d = choices.Output(a["d_bits"], a["d_major"] == "M")
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
    d = choices.Output(a["bits"], a["d_major"] == "M")
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
