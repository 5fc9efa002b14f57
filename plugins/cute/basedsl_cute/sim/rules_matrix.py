"""Rules of a warp's matrix instructions."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from basedsl_cute.sim import matrix
from basedsl_cute.sim.emitter import Emitter
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.records import Op
from basedsl_cute.sim.rules import never, rule
from basedsl_cute.sim.rules_memory import access_of
from basedsl_cute.sim.types import IntType, StructType, VectorType, element_type

_SHAPE = re.compile(r"m = (\d+), n = (\d+), k = (\d+)")


@rule("nvvm.mma.sync", uniform=never)
def _mma(e: Emitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    (result,) = op.results
    assert isinstance(result.type, StructType)
    sizes = op.integers("operandSegmentSizes")
    shape = _SHAPE.search(op.attributes["shape"])
    kind = re.search(r"<(\w+)>", op.attributes["multiplicandAPtxType"])
    d = {"f16": "f16", "f32": "f32", "i32": "s32"}.get(str(element_type(result.type.fields[0])))
    if shape is None or kind is None or d is None or kind[1] not in matrix._DTYPES:
        raise MissingRuleError(op.site, f"with {op.attributes}")
    what = matrix.Mma(tuple(map(int, shape.groups())), d, kind[1], op.site)  # type: ignore[arg-type]
    lanes = [e.lanes(operand) for operand in op.operands]
    ends = np.cumsum(sizes).tolist()
    groups = [lanes[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    texts = ", ".join(f"[{', '.join(group)}]" for group in groups)
    e.let(result, f"matrix.multiply(g, {e.const(what, 'mma')}, {texts}, {e.mask})")


def _turned(op: Op) -> bool:
    if "b16" not in op.attributes["eltType"] or "m = 8, n = 8" not in op.attributes["shape"]:
        raise MissingRuleError(op.site, "of other than 8x8 matrices of 16 bits")
    return "col" in op.attributes["layout"]


_ROW = VectorType((8,), IntType(16))


@rule("nvvm.ldmatrix", uniform=never)
def _ldmatrix(e: Emitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    (pointer,), (result,) = op.operands, op.results
    read = access_of(e, op, pointer, _ROW, "read", 16)
    number = op.integer("num")
    what = e.const(dataclasses.replace(read, dtype=np.dtype(np.uint16)), "read")
    address = e.lanes(pointer)
    turned = _turned(op)
    e.let(result, f"matrix.load_matrix(g, {what}, {number}, {turned}, {address}, {e.mask})")


@rule("nvvm.stmatrix")
def _stmatrix(e: Emitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    pointer, *words = op.operands
    write = access_of(e, op, pointer, _ROW, "write", 16)
    what = e.const(dataclasses.replace(write, dtype=np.dtype(np.uint16)), "write")
    values = ", ".join(e.lanes(word) for word in words)
    e.line(
        f"matrix.store_matrix(g, {what}, {_turned(op)}, {e.lanes(pointer)}, [{values}], {e.mask})"
    )
