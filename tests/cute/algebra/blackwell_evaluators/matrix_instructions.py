"""Evaluators of tcgen05.mma: atoms, tiled MMAs, fragments, partitions."""

from __future__ import annotations

from typing import Any

from basedsl_cute import algebra as cute
from basedsl_cute.algebra.layout import text

from .common import Args, op
from .descriptors import descriptor

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
