"""Evaluators of the layouts of scale factors."""

from __future__ import annotations

from typing import Any

from basedsl_cute import algebra as cute

from .common import Args, op
from .copies import copy_atom, tiled_copy
from .matrix_instructions import fragment, without_shape
from .shared_memory import smem_fields


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
