"""Evaluators of swizzled layouts in shared memory."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from basedsl_cute import algebra as cute

from .common import LAYOUT_TYPES, Args, op
from .descriptors import fields_of


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
