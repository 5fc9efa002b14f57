"""The algebra against CuTe itself: every record of a file computed with the C++ headers.

``vectors_dev.json.gz`` was produced from the headers under ``include/`` (BSD-3-Clause) of NVIDIA
CUTLASS, commit 7107b05535f8977f5ecb9d01ee203205b1fd9bc4, with a host compiler; it holds arguments
and results, no code. Notation: ``evaluators``. A record with ``dynamic`` was computed with run-time
integers: ``args_cute`` and ``result_cute`` mark static ints ``_4`` and run-time ints ``4``.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from basedsl_cute import algebra as cute

_HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("algebra_evaluators", _HERE / "evaluators.py")
evaluators = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evaluators)

COUNTS = {
    "append": 9,
    "append_to_rank": 8,
    "blocked_product": 79,
    "coalesce": 95,
    "coalesce_profile": 57,
    "complement": 144,
    "complement_default": 21,
    "composition": 170,
    "composition_basis": 18,
    "composition_tiler": 75,
    "copy_atom": 8,
    "crd2crd": 16,
    "crd2idx": 54,
    "crd2idx_stride": 36,
    "domain_distribute": 15,
    "downcast": 33,
    "filter": 53,
    "filter_profile": 24,
    "filter_zeros": 42,
    "flat_divide": 128,
    "flat_product": 82,
    "flatten": 40,
    "gmma_smem_atom": 7,
    "gmma_tile_to_shape": 49,
    "group": 51,
    "identity_composition": 24,
    "identity_eval": 12,
    "identity_flat_divide": 7,
    "identity_logical_divide": 7,
    "identity_tiled_divide": 7,
    "identity_zipped_divide": 7,
    "idx2crd": 72,
    "idx2crd_stride": 30,
    "inner_partition": 24,
    "layout_coord": 96,
    "layout_eval": 86,
    "left_inverse": 62,
    "local_partition": 39,
    "local_partition_proj": 12,
    "local_tile": 68,
    "local_tile_proj": 14,
    "logical_divide": 128,
    "logical_product": 82,
    "make_fragment_like": 31,
    "make_identity_layout": 18,
    "make_layout_left": 18,
    "make_layout_like": 38,
    "make_layout_right": 18,
    "make_layout_tv": 27,
    "make_ordered_layout": 53,
    "max_alignment": 31,
    "max_common_layout": 51,
    "max_common_vector": 63,
    "mma_atom": 20,
    "nullspace": 28,
    "outer_partition": 30,
    "prepend": 9,
    "prepend_to_rank": 8,
    "props": 101,
    "raked_product": 78,
    "recast_layout": 42,
    "right_inverse": 80,
    "select": 18,
    "slice_and_offset": 48,
    "swizzle_apply": 7,
    "swizzle_compose": 48,
    "swizzle_downcast": 11,
    "swizzle_local_tile": 21,
    "swizzle_recast_layout": 7,
    "swizzle_slice": 18,
    "swizzle_upcast": 11,
    "take": 15,
    "tile_to_shape": 80,
    "tiled_copy": 39,
    "tiled_copy_partition": 136,
    "tiled_copy_retile": 13,
    "tiled_copy_swizzled_partition": 4,
    "tiled_copy_tidfrg": 68,
    "tiled_divide": 128,
    "tiled_mma": 14,
    "tiled_mma_partition": 56,
    "tiled_mma_thrfrg": 42,
    "tiled_product": 82,
    "upcast": 42,
    "zipped_divide": 128,
    "zipped_product": 82,
}
"""Records of each op in the file."""


@functools.cache
def records() -> dict[str, list[dict[str, Any]]]:
    by_op: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(_HERE / "vectors_dev.json.gz", "rt") as file:
        for record in json.load(file):
            by_op.setdefault(record["op"], []).append(record)
    return by_op


def check_static(record: dict[str, Any]) -> None:
    args = {key: evaluators.read(value) for key, value in record["args"].items()}
    want = record["result"]
    if isinstance(want, dict) and "threads" in want:
        args["threads"] = want["threads"]
    got = evaluators.show(evaluators.EVALUATORS[record["op"]](args))
    if isinstance(want, dict) and record["op"] in ("swizzle_local_tile", "swizzle_slice"):
        shape = evaluators.read(want["shape"])
        assert cute.compatible(evaluators.read(got.pop("shape")), shape), record
        want = {key: value for key, value in want.items() if key != "shape"}
    if record["op"] == "tiled_mma" and "layout_C_TV" not in want:  # the reference has none there
        del got["layout_C_TV"]
    assert got == want, record


def check_dynamic(record: dict[str, Any]) -> None:
    values: dict[str, int] = {}
    args = {key: evaluators.read(value) for key, value in record["args"].items()}
    args |= {key: evaluators.read(v, values) for key, v in record["args_cute"].items()}
    args["count"] = lambda size: cute.evaluate(size, values)
    got = evaluators.EVALUATORS[record["op"]](args)

    def value_of(x: Any) -> Any:
        if isinstance(x, dict):
            return {key: value_of(e) for key, e in x.items()}
        return [value_of(e) for e in x] if isinstance(x, list) else cute.evaluate(x, values)

    assert evaluators.show(value_of(got)) == record["result"], record
    if "result_cute" in record:
        want = record["result_cute"]
        if isinstance(want, dict):  # the offset: coordinates were run-time integers there
            got, want = got["layout"], want["layout"]
        assert evaluators.marked(got) == marked(want), record


def marked(result_cute: Any) -> str:
    return re.sub(r"(?<![_#?])\d+", "?", re.sub(r"_\d+", "_#", str(result_cute)))


@pytest.mark.parametrize("op", sorted(records()))
def test_every_record_of(op: str) -> None:
    assert len(records()[op]) == COUNTS[op]
    for record in records()[op]:
        (check_dynamic if record.get("dynamic") else check_static)(record)


def test_the_file_is_complete() -> None:
    assert {op: len(rows) for op, rows in records().items()} == COUNTS
    assert sum(COUNTS.values()) == 3953
