"""Rules of matrix instructions of warps, and of inline PTX."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import matrix
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate import ptx_text
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
    _multiply(e, op, (tuple(map(int, shape.groups())), d, a, b), op.operands, sizes)


_TEXT = re.compile(
    r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.(\w+)\.(\w+)\.(\w+)\.\4 [{}$\d, ]+;"
)


@rule("llvm.inline_asm", uniform=never)
def _mma_text(e: PythonEmitter, op: Op) -> None:
    """The mma.sync of shapes and types that the nvvm dialect lacks, and the PTX of `ptx_text`."""
    text = op.string("asm_string")
    match = _TEXT.fullmatch(text)
    if match is None or not set(match.group(4, 5, 6)) <= matrix.TYPES:
        _one_instruction(e, op, text)
        return
    m, n, k = shape = tuple(map(int, match.group(1, 2, 3)))
    d, a, b = match.group(4, 5, 6)
    sizes = [matrix.registers(count, kind) for count, kind in ((m * k, a), (n * k, b), (m * n, d))]
    _multiply(e, op, (shape, d, a, b), op.operands, sizes)


def _one_instruction(e: PythonEmitter, op: Op, text: str) -> None:
    found = ptx_text.parse_instruction(text, len(op.operands)) if len(op.results) == 1 else None
    if found is None:
        raise MissingRuleError(op.site, f"of PTX text: {text.strip()!r}")
    name, sources = found
    e.globals["ptx_text"] = ptx_text
    # A number as written is one value for all lanes; the truth table of lop3 stays a number.
    arguments = [
        e.lanes(op.operands[source])
        if isinstance(source, int)
        else (source if name.startswith("lop3") else f"np.full(1, {source}).astype(np.int32)")
        for source in sources
    ]
    e.let(op.results[0], f"ptx_text.execute_instruction({name!r}, {', '.join(arguments)})")


def _multiply(e: PythonEmitter, op: Op, what: Any, operands: Any, sizes: Any) -> None:
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
    number = op.integer("num")
    what = e.const(dataclasses.replace(read, dtype=np.dtype(np.uint16)), "read")
    address = e.lanes(pointer)
    if "m = 16, n = 16" in op.attributes["shape"]:
        e.let(result, f"matrix.load_byte_matrix(g, {what}, {number}, {address}, {e.mask})")
        return
    turned = _turned(op)
    e.let(result, f"matrix.load_matrix(g, {what}, {number}, {turned}, {address}, {e.mask})")


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
