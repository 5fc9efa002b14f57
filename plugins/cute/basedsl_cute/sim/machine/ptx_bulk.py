"""Bulk copies of contiguous memory in inline PTX: `cp.async.bulk`, `cp.reduce.async.bulk`, and
their groups (PTX ISA 9.7.9.25).

Copies of tensors, to several blocks, and with a cache policy are not here.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.sim.machine import bulk_copies, bulk_groups
from basedsl_cute.sim.machine.ptx_program import PtxEffect, PtxInstruction
from basedsl_cute.sim.machine.state import Mask

_LOAD = re.compile(r"cp\.async\.bulk\.shared::(cta|cluster)\.global\.mbarrier::complete_tx::bytes")
_STORE = "cp.async.bulk.global.shared::cta.bulk_group"
_REDUCTION = re.compile(
    r"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group\.(\w+)\.(noftz\.)?(\w+)"
)
_TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "s32": np.int32, "u32": np.uint32, "b32": np.uint32, "s64": np.int64, "u64": np.uint64,
    "b64": np.uint64,
}  # fmt: skip
_FUNCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def bulk_effect(opcode: str) -> PtxEffect | None:
    """Return the effect of a bulk instruction, None for one that is not known here."""
    if _LOAD.fullmatch(opcode):
        return PtxEffect(_load)
    if opcode == _STORE:
        return PtxEffect(_store)
    if opcode == "cp.async.bulk.commit_group":
        return PtxEffect(_commit)
    if opcode in ("cp.async.bulk.wait_group", "cp.async.bulk.wait_group.read"):
        return PtxEffect(_wait, detail=opcode.endswith("read"))
    match = _REDUCTION.fullmatch(opcode)
    if match is None or match[1] not in _FUNCTIONS or match[3] not in _TYPES:
        return None
    if "f" in match[3] and match[1] in ("and", "or", "xor"):
        return None
    return PtxEffect(_store, detail=(np.dtype(_TYPES[match[3]]), _FUNCTIONS[match[1]]))


def _load(state: Any, one: PtxInstruction, mask: Mask) -> None:
    """`cp.async.bulk [shared], [global], size, [mbarrier]`."""
    to, source, size, barrier = one.operands
    bulk_copies.bulk_load(
        state.g, mask, state.program.site, state.address(to, 3), state.address(source, 1),
        state.read(size, "u32"), state.address(barrier, 3),
    )  # fmt: skip


def _store(state: Any, one: PtxInstruction, mask: Mask) -> None:
    """`cp.async.bulk [global], [shared], size`, and `cp.reduce` with what combines the bytes."""
    assert one.effect is not None
    to, source, size = one.operands
    bulk_copies.bulk_store(
        state.g, mask, state.program.site, state.address(to, 1), state.address(source, 3),
        state.read(size, "u32"), one.effect.detail,
    )  # fmt: skip


def _commit(state: Any, one: PtxInstruction, mask: Mask) -> None:
    bulk_groups.commit_bulk_group(state.g, mask)


def _wait(state: Any, one: PtxInstruction, mask: Mask) -> None:
    """`cp.async.bulk.wait_group[.read] n`."""
    assert one.effect is not None
    (groups,) = one.operands
    bulk_groups.wait_for_bulk_groups(state.g, int(groups), one.effect.detail, mask)
