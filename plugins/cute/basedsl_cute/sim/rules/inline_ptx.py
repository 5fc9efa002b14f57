"""The rule of inline PTX."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import matrix, ptx_program
from basedsl_cute.sim.rules.matrix import multiply
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.ptx_text import UnknownPtxError, parse_ptx
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import Sync, never, nvidia_rule
from basedsl_cute.sim.translate.types import LLVMStructType, Type, dtype_of

_MMA = re.compile(
    r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.(\w+)\.(\w+)\.(\w+)\.\4 [{}$\d, ]+;"
)
_ASYNC = re.compile(r"\b(st\.async|cp\.(reduce\.)?async)\b")
_READS = re.compile(r"\b(ld|atom|ld_reduce)\.|%globaltimer")


def _sync(op: Op) -> Sync:
    return "warp" if _ASYNC.search(op.string("asm_string")) else "none"


def _is_volatile(op: Op) -> bool:
    return _READS.search(op.string("asm_string")) is not None


@nvidia_rule("llvm.inline_asm", uniform=never, sync=_sync, volatile=_is_volatile)
def _inline_asm(e: PythonEmitter, op: Op) -> None:
    """The mma.sync of shapes and types that the nvvm dialect lacks, and programs of `ptx_text`."""
    text = op.string("asm_string")
    match = _MMA.fullmatch(text)
    if match is not None and set(match.group(4, 5, 6)) <= matrix.TYPES:
        m, n, k = shape = tuple(map(int, match.group(1, 2, 3)))
        d, a, b = match.group(4, 5, 6)
        sizes = [matrix.registers(*counted) for counted in ((m * k, a), (n * k, b), (m * n, d))]
        multiply(e, op, (shape, d, a, b), op.operands, sizes)
        return
    types = _results(op)
    try:
        program = parse_ptx(
            text, op.string("constraints"), [_dtype(t) for t in types], len(op.operands), op.site
        )
    except UnknownPtxError as error:
        raise MissingRuleError(op.site, f"{error} in PTX text: {text.strip()!r}") from None
    e.globals["run_ptx"] = ptx_program.run_ptx
    what = e.const(program, "ptx")
    arguments = ", ".join(e.lanes(operand) for operand in op.operands)
    call = f"run_ptx(g, {what}, [{arguments}], {e.mask})"
    if op.results:
        e.let(op.results[0], call)
    else:
        e.line(call)


def _results(op: Op) -> tuple[Type, ...]:
    if not op.results:
        return ()
    type_ = op.results[0].type
    return tuple(type_.fields) if isinstance(type_, LLVMStructType) else (type_,)


def _dtype(type_: Any) -> Any:
    return np.dtype(np.bool_) if str(type_) == "i1" else np.dtype(dtype_of(type_))
