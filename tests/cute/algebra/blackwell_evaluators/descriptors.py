"""Evaluators of instruction descriptors and of descriptors of operands in shared memory."""

from __future__ import annotations

from typing import Any

from basedsl_cute.hardware.tensor_memory import instruction_descriptor

from .common import Args, op


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
