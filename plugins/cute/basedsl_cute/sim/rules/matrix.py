"""Rules of matrix instructions of warps."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import matrix
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import never, rule
from basedsl_cute.sim.translate.types import IntType, LLVMStructType, VectorType, element_type

_SHAPE = re.compile(r"m = (\d+), n = (\d+), k = (\d+)")


@rule("nvvm.mma.sync", uniform=never)
def _mma(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    assert isinstance(result.type, LLVMStructType)
    sizes = op.integers("operandSegmentSizes")
    shape = _SHAPE.search(op.attributes["shape"])
    kinds = [
        re.search(r"<(\w+)>", op.attributes[f"multiplicand{letter}PtxType"]) for letter in "AB"
    ]
    element = str(element_type(result.type.fields[0]))
    d = "s32" if element == "i32" else element
    a, b = (kind[1] if kind is not None else "" for kind in kinds)
    if shape is None or not {d, a, b} <= matrix.TYPES:
        raise MissingRuleError(op.site, f"with {op.attributes}")
    multiply(e, op, (tuple(map(int, shape.groups())), d, a, b), op.operands, sizes)


def multiply(e: PythonEmitter, op: Op, what: Any, operands: Any, sizes: Any) -> None:
    """Write a matrix instruction of the shape and types `what`: (m, n, k), d, a, b."""
    e.globals["matrix"] = matrix
    shape, d, a, b = what
    record = e.const(matrix.MmaInstruction(shape, d, a, b, op.site), "mma")
    lanes = [e.lanes(operand) for operand in operands]
    ends = np.cumsum(sizes).tolist()
    groups = [lanes[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    texts = ", ".join(f"[{', '.join(group)}]" for group in groups)
    e.let(op.results[0], f"matrix.mma_sync(g, {record}, {texts}, {e.mask})")


def _turned(op: Op) -> bool:
    if "b16" not in op.attributes["eltType"] or "m = 8, n = 8" not in op.attributes["shape"]:
        raise MissingRuleError(op.site, f"of {op.attributes['shape']}")
    return "col" in op.attributes["layout"]


_ROW = VectorType((8,), IntType(16))


@rule("nvvm.ldmatrix", uniform=never)
def _ldmatrix(e: PythonEmitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    (pointer,), (result,) = op.operands, op.results
    read = access_of(e, op, pointer, _ROW, "read", 16)
    read.spreads = result in e.poison.may
    number = op.integer("num")
    what = e.const(dataclasses.replace(read, dtype=np.dtype(np.uint16)), "read")
    address = e.lanes(pointer)
    if "m = 16, n = 16" in op.attributes["shape"]:
        e.let(result, f"matrix.load_byte_matrix(g, {what}, {number}, {address}, {e.mask})")
        e.poison.take(result)
        return
    turned = _turned(op)
    e.let(result, f"matrix.load_matrix(g, {what}, {number}, {turned}, {address}, {e.mask})")
    e.poison.take(result)


@rule("nvvm.stmatrix")
def _stmatrix(e: PythonEmitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    pointer, *words = op.operands
    write = access_of(e, op, pointer, _ROW, "write", 16)
    what = e.const(dataclasses.replace(write, dtype=np.dtype(np.uint16)), "write")
    values = ", ".join(e.lanes(word) for word in words)
    e.line(
        f"matrix.store_matrix(g, {what}, {_turned(op)}, {e.lanes(pointer)}, [{values}], {e.mask})"
    )
