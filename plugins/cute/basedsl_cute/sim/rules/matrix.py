"""Rules of matrix instructions of warps."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import fragments, matrix
from basedsl_cute.sim.rules.memory import access_of, register_array
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.grouping import SAME_BITS, Bundle
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


class _Rows:
    """Rows of one array of registers, as elements of one type."""

    def __init__(self, e: PythonEmitter) -> None:
        self.e = e
        self.names: tuple[str, str] | None = None
        self.dtype: Any = None

    def take(self, op: Op) -> list[int] | None:
        """The rows of a load or store; None if they are of another array or type."""
        e = self.e
        rows = e.rows_of(op)
        if rows is None:
            return None
        access, *names = register_array(e, op)
        if self.names not in (None, tuple(names)) or self.dtype not in (None, access.dtype):
            return None
        self.names, self.dtype = (names[0], names[1]), access.dtype
        size = rows.array.itemsize
        if access.dtype.itemsize != size:
            return None
        return list(
            range((rows.first - rows.array.base) // size, (rows.end - rows.array.base) // size)
        )


def _origin(value: Value) -> Op | None:
    """The operation that gives all bits of a value, behind changes of its type."""
    op = value.defining
    while op is not None and op.name in SAME_BITS:
        source = op.operands[0]
        if len(op.operands) > 1 or source.type.size != value.type.size:
            return None
        op = source.defining
    return op


def _mma_bundle(e: PythonEmitter, bundle: Bundle) -> str | None:
    """The product of all fragments of a bundle, where they lie in arrays of registers."""
    (shape, d, a, b), sizes = _product(bundle.ops[0])
    loads = set(bundle.loads)
    ends = np.cumsum(sizes).tolist()
    arrays = [_Rows(e) for _ in range(4)]
    operands: list[dict[tuple[int, ...], int]] = [{}, {}]
    added, which = [], []
    for op in bundle.ops:
        parts = []
        for array, size, end in zip(arrays, sizes, ends, strict=False):
            rows: list[int] = []
            for value in op.operands[end - size : end]:
                load = _origin(value)
                taken = array.take(load) if load is not None and load in loads else None
                if taken is None:
                    return None
                rows += taken
            parts.append(tuple(rows))
        pair = [
            found.setdefault(rows, len(found)) for found, rows in zip(operands, parts, strict=False)
        ]
        which.append((pair[0], pair[1]))
        added.append(list(parts[2]))
    results = _stored(bundle, arrays[3])
    kinds = [np.dtype(matrix.DTYPES[kind]) for kind in (a, b, d, d)]
    if results is None or "tf32" in (a, b) or [one.dtype for one in arrays] != kinds:
        return None
    if len(operands[0]) * len(operands[1]) > 2 * len(bundle.ops):
        return None
    stored = [[row for _, rows in sorted(one.items()) for row in rows] for one in results]
    if any(len(rows) != len(to) for rows, to in zip(added, stored, strict=True)):
        return None
    e.globals["fragments"] = fragments
    what = matrix.MmaInstruction(shape, d, a, b, bundle.ops[0].site)
    left, right = ([list(rows) for rows in found] for found in operands)
    record = e.const(fragments.RowProducts(what, left, right, added, stored, which), "products")
    names = [one.names or ("", "") for one in arrays]
    texts = [", ".join(part) for part in zip(*names, strict=True)]
    return f"fragments.multiply_rows(g, {record}, {texts[0]}, {texts[1]})"


def _stored(bundle: Bundle, array: _Rows) -> list[dict[int, list[int]]] | None:
    """The rows where each register of each result of a bundle is stored, once; None if one is
    stored elsewhere.
    """
    number = {op: i for i, op in enumerate(bundle.ops)}
    found: list[dict[int, list[int]]] = [{} for _ in bundle.ops]
    taken: set[int] = set()
    for store in bundle.behind:
        if store.name != "llvm.store":
            continue
        at = 0
        op = _origin(store.operands[0])
        if op is not None and op.name == "llvm.extractvalue":
            (at,) = op.integers("position")
            op = op.operands[0].defining
        rows = array.take(store)
        if (
            op not in number
            or rows is None
            or at in found[number[op]]
            or not taken.isdisjoint(rows)
        ):
            return None
        taken.update(rows)
        found[number[op]][at] = rows
    return found


@nvidia_rule("nvvm.mma.sync", uniform=never, many=_mma_many, bundle=_mma_bundle)
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


def _matrix_read(e: PythonEmitter, op: Op, bits: int) -> Any:
    # Of a row of packed elements only their bytes are read.
    row = _ROW if bits == 0 else VectorType((bits,), IntType(16))
    read = access_of(e, op, op.operands[0], row, "read", 16)
    read.spreads = op.results[0] in e.poison.may
    return dataclasses.replace(read, dtype=np.dtype(np.uint16))


def _ldmatrix_bundle(e: PythonEmitter, bundle: Bundle) -> str | None:
    """The loads of all fragments of a bundle, of one line, to an array of registers."""
    first = bundle.ops[0]
    number = first.integer("num")
    if "m = 8, n = 8" not in first.attributes["shape"] or "b16" not in first.attributes["eltType"]:
        return None
    array = _Rows(e)
    results = _stored(bundle, array)
    if results is None or any(len(one) != number for one in results):
        return None
    reads = tuple(_matrix_read(e, op, 0) for op in bundle.ops)
    if reads[0].space != 3 or array.names is None:
        return None
    e.globals["fragments"] = fragments
    rows = [row for one in results for _, held in sorted(one.items()) for row in held]
    record = e.const(fragments.RowLoads(reads, number, _turned(first), rows), "loads")
    addresses = ", ".join(e.lanes(op.operands[0]) for op in bundle.ops)
    return f"fragments.load_rows(g, {record}, {', '.join(array.names)}, ({addresses},))"


@nvidia_rule("nvvm.ldmatrix", uniform=never, bundle=_ldmatrix_bundle)
def _ldmatrix(e: PythonEmitter, op: Op) -> None:
    e.globals["matrix"] = matrix
    (pointer,), (result,) = op.operands, op.results
    packed = _PACKED.search(op.attributes["eltType"])
    bits = int(packed[1]) if packed is not None else 0
    number = op.integer("num")
    what = e.const(_matrix_read(e, op, bits), "read")
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
