"""Rules of cp.async (PTX ISA, non-bulk copy)."""

from __future__ import annotations

import dataclasses

import numpy as np

from basedsl_cute.sim.machine import async_copy, mbarriers
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.grouping import Bundle
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import nvidia_rule
from basedsl_cute.sim.translate.types import IntType, VectorType


def _accesses(e: PythonEmitter, op: Op) -> tuple[MemoryAccess, MemoryAccess]:
    to, source = op.operands[:2]
    size = op.integer("size")
    bytes_ = VectorType((size,), IntType(8))
    read = access_of(e, op, source, bytes_, "asynchronous read", size)
    write = access_of(e, op, to, bytes_, "asynchronous write", size)
    read, write = (dataclasses.replace(a, dtype=np.dtype(np.uint8)) for a in (read, write))
    return read, write


def _copies(e: PythonEmitter, bundle: Bundle) -> str | None:
    """The copies of one line, where all read memory of one argument."""
    found = [_accesses(e, op) for op in bundle.ops]
    read, write = found[0]
    if any(len(op.operands) > 2 for op in bundle.ops) or any(r.root != read.root for r, _ in found):
        return None
    e.globals["async_copy"] = async_copy
    to, source = (", ".join(e.lanes(op.operands[i]) for op in bundle.ops) for i in (0, 1))
    names = f"{e.const(read, 'read')}, {e.const(write, 'write')}"
    return f"async_copy.issue_copies(g, {names}, ({to}), ({source}))"


@nvidia_rule("nvvm.cp.async.shared.global", bundle=_copies)
def _copy(e: PythonEmitter, op: Op) -> None:
    """Both addresses must be aligned to the size of the copy; `cpSize` bytes are read, the rest is
    0.
    """
    to, source, *sizes = op.operands
    read, write = _accesses(e, op)
    e.globals["async_copy"] = async_copy
    valid = e.ref(sizes[0]) if sizes else "None"
    e.line(
        f"async_copy.issue_copy(g, {e.const(read, 'read')}, {e.const(write, 'write')}, "
        f"{e.lanes(to)}, {e.lanes(source)}, {valid}, {e.mask})"
    )


@nvidia_rule("nvvm.cp.async.commit.group")
def _commit(e: PythonEmitter, op: Op) -> None:
    e.globals["async_copy"] = async_copy
    e.line(f"async_copy.commit_copies(g, {e.mask})")


@nvidia_rule("nvvm.cp.async.wait.group")
def _wait_group(e: PythonEmitter, op: Op) -> None:
    e.globals["async_copy"] = async_copy
    e.line(f"async_copy.wait_for_copies(g, {op.integer('n')}, {e.mask})")


@nvidia_rule("nvvm.cp.async.wait.all")
def _wait_all(e: PythonEmitter, op: Op) -> None:
    e.globals["async_copy"] = async_copy
    e.line(f"async_copy.wait_for_copies(g, None, {e.mask})")


@nvidia_rule("nvvm.cp.async.mbarrier.arrive", "nvvm.cp.async.mbarrier.arrive.shared", sync="warp")
def _arrive(e: PythonEmitter, op: Op) -> None:
    """Each lane arrives when its copies so far are complete. Without `noinc` the pending count is
    raised first, so that the arrival is not counted (PTX ISA, cp.async.mbarrier.arrive).
    """
    e.globals["mbarriers"] = mbarriers
    address = e.lanes(op.operands[0])
    e.line(f"mbarriers.arrive_after_copies(g, {address}, {op.flag('noinc')}, {e.mask}, {e.at()})")
