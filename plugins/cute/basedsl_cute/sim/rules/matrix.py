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
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import never, nvidia_rule
from basedsl_cute.sim.translate.types import IntType, LLVMStructType, VectorType, element_type

_SHAPE = re.compile(r"m = (\d+), n = (\d+), k = (\d+)")


def _mma_many(e: PythonEmitter, ops: list[Op], same: dict[Value, Value]) -> None:
    """Write independent products of the same shape and types as one call."""
    e.globals["matrix"] = matrix
    (shape, d, a, b), sizes = _product(ops[0])
    ends = np.cumsum(sizes).tolist()
    lists: list[dict[tuple[Value, ...], int]] = [{}, {}]
    picks: list[list[int]] = [[], []]
    added = []
    for op in ops:
        e.site = op.site
        parts = [op.operands[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        for i in (0, 1):
            key = tuple(same.get(value, value) for value in parts[i])
            picks[i].append(lists[i].setdefault(key, len(lists[i])))
        added.append(f"[{', '.join(map(e.lanes, parts[2]))}]")
        e.products[op] = e.const(matrix.MmaInstruction(shape, d, a, b, op.site), "mma")
    unique = ["".join(f"[{', '.join(map(e.lanes, part))}], " for part in found) for found in lists]
    records = ", ".join(e.products[op] for op in ops)
    call = f"matrix.mma_many(g, ({records}), ({unique[0]}), ({unique[1]}), "
    call += f"({', '.join(added)}), {picks[0]}, {picks[1]})"
    results = e.temporary("d")
    e.line(f"{results} = {call}")
    for i, op in enumerate(ops):
        e.let(op.results[0], f"{results}[{i}]")
    e.line(f"del {results}")


@nvidia_rule("nvvm.mma.sync", uniform=never, many=_mma_many)
def _mma(e: PythonEmitter, op: Op) -> None:
    what, sizes = _product(op)
    multiply(e, op, what, op.operands, sizes)


def _product(op: Op) -> tuple[Any, list[int]]:
    """The shape and types of a product, and how many operands its parts have."""
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
    return (tuple(map(int, shape.groups())), d, a, b), sizes


@nvidia_rule("nvvm.mma.block_scale", uniform=never)
def _mma_block_scale(e: PythonEmitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    shape = _SHAPE.search(op.attributes["shape"])
    assert shape is not None
    a, b, size, scale = (
        _inner(op, name)
        for name in (
            "multiplicandAPtxType", "multiplicandBPtxType", "scaleVecSize", "blockScaleFormat",
        )
    )  # fmt: skip
    m, n, k = map(int, shape.groups())
    what = matrix.ScaledMmaInstruction((m, n, k), "f32", a, b, op.site, scale, int(size[1:]))
    record = e.const(what, "mma")
    lanes = [e.lanes(operand) for operand in op.operands]
    sizes = op.integers("operandSegmentSizes")
    ends = np.cumsum(sizes[:3]).tolist()
    groups = [lanes[end - size : end] for size, end in zip(sizes[:3], ends, strict=True)]
    texts = ", ".join(f"[{', '.join(group)}]" for group in [*groups, lanes[ends[-1] :]])
    e.let(op.results[0], f"matrix.mma_scaled(g, {record}, {texts}, {e.mask})")


def _inner(op: Op, name: str) -> str:
    found = re.search(r"<(\w+)>", op.attributes[name])
    assert found is not None
    return found[1]


def multiply(e: PythonEmitter, op: Op, what: Any, operands: Any, sizes: Any) -> None:
    """Write a matrix instruction of the shape and types `what`: (m, n, k), d, a, b."""
    e.globals["matrix"] = matrix
    shape, d, a, b = what
    record = e.products[op] = e.const(matrix.MmaInstruction(shape, d, a, b, op.site), "mma")
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
_PACKED = re.compile(r"b(4|6)x16")


@nvidia_rule("nvvm.ldmatrix", uniform=never)
def _ldmatrix(e: PythonEmitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    (pointer,), (result,) = op.operands, op.results
    packed = _PACKED.search(op.attributes["eltType"])
    bits = int(packed[1]) if packed is not None else 0
    # Of a row of packed elements only their bytes are read.
    row = _ROW if bits == 0 else VectorType((bits,), IntType(16))
    read = access_of(e, op, pointer, row, "read", 16)
    read.spreads = result in e.poison.may
    number = op.integer("num")
    what = e.const(dataclasses.replace(read, dtype=np.dtype(np.uint16)), "read")
    address = e.lanes(pointer)
    if "m = 16, n = 16" in op.attributes["shape"]:
        text = f"load_byte_matrix(g, {what}, {number}, {address}, {e.mask}, {bits})"
    elif bits:
        text = f"load_matrix(g, {what}, {number}, False, {address}, {e.mask}, {bits})"
    else:
        text = f"load_matrix(g, {what}, {number}, {_turned(op)}, {address}, {e.mask})"
    e.let(result, f"matrix.{text}")
    e.poison.take(result)


@nvidia_rule("nvvm.stmatrix")
def _stmatrix(e: PythonEmitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    pointer, *words = op.operands
    write = access_of(e, op, pointer, _ROW, "write", 16)
    what = e.const(dataclasses.replace(write, dtype=np.dtype(np.uint16)), "write")
    values = ", ".join(e.lanes(word) for word in words)
    if "m = 16, n = 8" in op.attributes["shape"]:
        e.line(f"matrix.store_byte_matrix(g, {what}, {e.lanes(pointer)}, [{values}], {e.mask})")
        return
    e.line(
        f"matrix.store_matrix(g, {what}, {_turned(op)}, {e.lanes(pointer)}, [{values}], {e.mask})"
    )
