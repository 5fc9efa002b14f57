"""Evaluators of copies of tensor memory and of tcgen05.cp."""

from __future__ import annotations

import re
from typing import Any

from basedsl_cute import algebra as cute
from basedsl_cute.algebra.layout import text

from .common import Args, op


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
