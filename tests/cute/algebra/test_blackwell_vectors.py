"""Blackwell facts against CuTe's C++ headers: every record of a file that they computed.

``blackwell_dev.json.gz`` was produced like ``vectors_dev.json.gz`` (see `test_vectors`): arguments
and results, no code. Notation: ``evaluators``; what each op is: ``blackwell_evaluators``.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from basedsl_cute import algebra as cute

sys.path.insert(0, str(Path(__file__).parent))

import blackwell_evaluators as blackwell
import evaluators

_HERE = Path(__file__).parent

COUNTS = {
    "copy_atom_sm100": 4,
    "sf_atom": 2,
    "sf_gmem_layout": 24,
    "sf_smem_layout": 30,
    "sf_tensor_layout": 1,
    "sf_tmem_frag": 31,
    "sf_utccp_copy": 17,
    "sfd_gmem_layout": 6,
    "sm100_epilogue_smem_atom": 16,
    "sm100_epilogue_stages": 14,
    "sm100_epilogue_tile": 50,
    "sm100_smem_copy_ops": 24,
    "sm100_smem_selector": 17,
    "sm100_stage_count": 8,
    "sm100_tma_atoms": 4,
    "sm100_tmem_load_op": 41,
    "sm100_tmem_warps": 2,
    "sm120_mma_atom": 15,
    "sm120_mma_block_scaled_atom": 9,
    "sm120_smem_copy_ops": 16,
    "sm120_smem_selector": 5,
    "sm120_tile_n_permute": 3,
    "sm120_tiled_mma": 8,
    "tmem_copy": 83,
    "tmem_copy_atom": 45,
    "tmem_copy_atom_elems": 22,
    "tmem_copy_partition": 47,
    "tmem_frg": 32,
    "tmem_frg_ws": 5,
    "tmem_op_repeater": 22,
    "tmem_ptr_add": 10,
    "tmem_sf_frg": 10,
    "tmem_warp_partitioner": 3,
    "umma_desc_tensor": 43,
    "umma_instr_desc": 88,
    "umma_instr_desc_block_scaled": 46,
    "umma_mma_atom": 55,
    "umma_partition_coords": 12,
    "umma_partition_shape": 29,
    "umma_smem_atom": 16,
    "umma_smem_desc": 65,
    "umma_tile_to_mma_shape": 46,
    "umma_tile_to_shape": 45,
    "umma_tiled_mma": 18,
    "umma_tmem_frag_A": 28,
    "umma_tmem_frag_C": 71,
    "utccp_atom": 4,
    "utccp_copy": 7,
}
"""Records of each op in the file."""

NOT_DONE: dict[str, str] = {}
"""Ops without an evaluator, with the reason."""


@functools.cache
def records() -> dict[str, list[dict[str, Any]]]:
    by_op: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(_HERE / "blackwell_dev.json.gz", "rt") as file:
        for record in json.load(file):
            by_op.setdefault(record["op"], []).append(record)
    return by_op


def check(record: dict[str, Any]) -> None:
    args, values = blackwell.arguments(record), {}
    evaluate = blackwell.EVALUATORS[record["op"]]
    if not record.get("dynamic"):
        assert evaluators.show(evaluate(args)) == record["result"], record
        return
    for name in {"mnkl", "mnl"} & set(args):  # run-time integers there
        args[name] = evaluators.read(record["args"][name], values)
    got = evaluate(args)
    known = {key: cute.evaluate(value, values) for key, value in got.items()}
    assert evaluators.show(known) == record["result"], record
    marks = re.sub(r"(?<![_#?])\d+", "?", re.sub(r"_\d+", "_#", record["result_cute"]["layout"]))
    assert evaluators.marked(got["layout"]) == marks, record


@pytest.mark.parametrize("op", sorted(COUNTS))
def test_every_record_of(op: str) -> None:
    assert len(records()[op]) == COUNTS[op]
    if op in NOT_DONE:
        pytest.skip(f"{COUNTS[op]} records of {op}: {NOT_DONE[op]}")
    for record in records()[op]:
        check(record)


def test_the_file_is_complete() -> None:
    assert {op: len(rows) for op, rows in records().items()} == COUNTS
    assert sum(COUNTS.values()) == 1199
    assert set(blackwell.EVALUATORS) == set(COUNTS) - set(NOT_DONE)
