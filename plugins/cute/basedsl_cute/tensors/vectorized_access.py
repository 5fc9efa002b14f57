"""A whole tensor of static shape as one vector: which accesses it takes, how wide, and where.

Elements that lie together are accessed together, up to 16 bytes, as far as contiguity, the known
alignment, the divisibility of dynamic strides and offsets, and the blocks of a swizzle prove it.
Register tensors have no alignment to care for: a contiguous run is one access.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import is_dynamic, mlir_type
from basedsl.tracing import require
from basedsl_cute import algebra
from basedsl_cute.algebra import dynamic
from basedsl_cute.algebra.coordinates import compact_col_major
from basedsl_cute.algebra.int_tuple import flatten_to_tuple
from basedsl_cute.dialect import define, note_access
from basedsl_cute.dialect.ops import Load, Store
from basedsl_cute.tensors.pointer import index_value, storage_bits
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vector_ops import extract, from_elements, pick, splat, to_elements

WIDEST = 16  # bytes of one access


@dataclass(frozen=True)
class Access:
    """One load or store: where it begins, and the vector positions of each of its elements."""

    index: Any
    positions: tuple[tuple[int, ...], ...]


def accesses(tensor: Tensor) -> list[Access]:
    """How all elements of a tensor are read or written, each memory element once."""
    outer = tensor.layout
    while isinstance(outer, algebra.ComposedLayout):
        outer = outer.outer
    if not algebra.is_static(outer.shape):
        raise DSLTypeError(
            f"a tensor of dynamic shape, {outer}, is no vector",
            hint="tile it with a static tiler first, index it element by element, or call with "
            "from_dlpack(array), whose shape is static",
        )
    together = _indivisible(tensor)
    return [
        Access(_index(tensor, dynamic.add(start, first)), positions)
        for start, at in _starts(outer)
        for first, positions in _blocks(outer, at, together, tensor)
    ]


def vector_width(tensor: Tensor) -> int:
    """How many elements one access of `load()` and `store()` moves."""
    return min(len(access.positions) for access in accesses(tensor))


def _modes(outer: Any) -> list[tuple[int, Any, int]]:
    """Extent, stride in memory and stride in the vector of every leaf."""
    flat = (
        flatten_to_tuple(x) for x in (outer.shape, outer.stride, compact_col_major(outer.shape))
    )
    return list(zip(*flat, strict=True))


def _starts(outer: Any) -> Iterator[tuple[Any, int]]:
    """Offset and vector position of every coordinate in the modes whose stride is dynamic."""
    modes = [mode for mode in _modes(outer) if is_dynamic(mode[1])]
    for i in range(math.prod(extent for extent, _, _ in modes)):
        offset: Any = 0
        position = 0
        for extent, stride, step in modes:
            i, c = divmod(i, extent)
            offset = dynamic.add(offset, dynamic.mul(c, stride))
            position += c * step
        yield offset, position


def _blocks(
    outer: Any, at: int, together: int, tensor: Tensor
) -> list[tuple[int, tuple[tuple[int, ...], ...]]]:
    """First offset and vector positions of every access in the modes whose stride is static."""
    modes = [mode for mode in _modes(outer) if not is_dynamic(mode[1])]
    places: dict[int, list[int]] = {0: [at]}
    for extent, stride, step in modes:
        grown: dict[int, list[int]] = {}
        for offset, positions in places.items():
            for c in range(extent):
                grown.setdefault(offset + c * stride, []).extend(p + c * step for p in positions)
        places = grown
    offsets = sorted(places)
    if tensor.memspace == "rmem" and together == 0:
        starts = [o for o in offsets if o - 1 not in places]
        runs = [[*range(o, next(e for e in range(o, o + len(places) + 1) if e not in places))]
                for o in starts]  # fmt: skip
    else:
        width = together or 1
        while width > 1 and not _fits(offsets, width):
            width = width // 2 if width >= 2 * _in_whole_bytes(tensor) else 1
        runs = [[*range(o, o + width)] for o in offsets if o % width == 0]
    return [(run[0], tuple(tuple(places[o]) for o in run)) for run in runs]


def _in_whole_bytes(tensor: Tensor) -> int:
    """The fewest elements that are whole bytes."""
    return 8 // math.gcd(8, storage_bits(tensor.element_type))


def _fits(offsets: list[int], width: int) -> bool:
    """Whether the offsets are whole aligned groups of `width`."""
    known = set(offsets)
    return all(o - o % width + i in known for o in offsets for i in range(width))


def _indivisible(tensor: Tensor) -> int:
    """Elements in the widest access that alignment allows; 0 for no limit."""
    pointer = tensor.pointer
    limits: list[int] = []
    layout = tensor.layout
    while isinstance(layout, algebra.ComposedLayout):
        limits.append(_block(layout.inner))
        limits.append(dynamic.divisibility(layout.offset))
        layout = layout.outer
    limits += [dynamic.divisibility(mode[1]) for mode in _modes(layout) if is_dynamic(mode[1])]
    if pointer.swizzle is not None:
        swizzle = algebra.recast_layout(storage_bits(pointer.dtype), 8, pointer.swizzle)
        limits += [_block(swizzle), dynamic.divisibility(pointer.offset)]
    limit = math.gcd(*limits) if limits else 0
    bits = storage_bits(pointer.dtype)
    if bits < 8 and 8 % bits:  # four of 6 bits: three bytes, whose alignment says nothing
        together = _in_whole_bytes(tensor)
        known = math.gcd(limit, dynamic.divisibility(pointer.offset))
        return together if known % together == 0 else 1
    if bits < 8 and not dynamic.is_zero(pointer.offset):
        limits.append(dynamic.divisibility(pointer.offset))
    if pointer.space == "rmem" and not limits and bits >= 8:
        return 0
    widest = max(1, min(WIDEST, pointer.base_align) * 8 // bits)
    limit = math.gcd(limit, widest)
    return limit & -limit


def _block(inner: Any) -> int:
    """Indices that an inner function keeps together; 0 if nothing breaks them."""
    if isinstance(inner, algebra.Swizzle):
        return inner.max_alignment if inner.bits else 0
    return 1


def _index(tensor: Tensor, offset: Any) -> Any:
    """The index behind the tensor's pointer of an offset of the outermost layout."""
    layout, chain = tensor.layout, []
    while isinstance(layout, algebra.ComposedLayout):
        chain.append(layout)
        layout = layout.outer
    for composed in reversed(chain):
        offset = composed.inner(algebra.add_offset(composed.offset, offset))
    return tensor.pointer.index(offset)


# Loading and storing -----------------------------------------------------------------------------


def load_vector(tensor: Tensor, cache: str | None = None) -> Any:
    """All elements, in colexicographic order of the shape, as a vector of the IR. `cache` is as
    `cute.load` has it.
    """
    trace = require("loading a tensor")
    if not algebra.is_static(tensor.shape):
        accesses(tensor)  # raises
    n = int(algebra.size(tensor.shape))
    if n == 0:
        raise DSLTypeError(f"a tensor of shape {tensor.shape} has no elements to load")
    parts = [(access, _load(trace, tensor, access, cache)) for access in accesses(tensor)]
    elements: list[Any] = [None] * n
    if len(parts) == 1 and len(parts[0][0].positions) > 1:
        order = [0] * n
        for i, positions in enumerate(parts[0][0].positions):
            for p in positions:
                order[p] = i
        return pick(parts[0][1], order)
    for access, value in parts:
        scalars = [value] if len(access.positions) == 1 else to_elements(value)
        for scalar, positions in zip(scalars, access.positions, strict=True):
            for p in positions:
                elements[p] = scalar
    return splat(elements[0], n) if len(parts) == 1 else from_elements(elements)


def store_vector(tensor: Tensor, vector: Any, cache: str | None = None) -> None:
    """The inverse of `load_vector`; of elements that share a place, the last is stored."""
    trace = require("storing a tensor")
    dialect = define(trace.bindings)
    for access in accesses(tensor):
        order = [positions[-1] for positions in access.positions]
        value = extract(vector, order[0]) if len(order) == 1 else pick(vector, order)
        note_access()
        Store(
            dialect,
            value=value,
            memref=tensor.pointer.address.ir_value(),
            index=index_value(access.index),
            alignment=_alignment(tensor, len(order)),
            cache=cache,
            loc=trace.loc(),
        )


def _load(trace: Any, tensor: Tensor, access: Access, cache: str | None) -> Any:
    n = len(access.positions)
    element = mlir_type(tensor.element_type, trace.ir)
    kind = element if n == 1 else trace.ir.VectorType.get([n], element)
    note_access()
    return Load(
        define(trace.bindings),
        memref=tensor.pointer.address.ir_value(),
        index=index_value(access.index),
        type=kind,
        alignment=_alignment(tensor, n),
        cache=cache,
        loc=trace.loc(),
    ).value


def _alignment(tensor: Tensor, n: int) -> int | None:
    bits = storage_bits(tensor.element_type)
    whole = n * bits // 8
    return None if n == 1 or tensor.memspace == "rmem" else whole & -whole
