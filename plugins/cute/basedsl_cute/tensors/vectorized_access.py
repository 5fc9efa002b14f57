"""Vectorised loads and stores: the accesses that read or write a tensor of static shape.

Consecutive elements are accessed together, up to 16 bytes, as far as contiguity, the known
alignment, the divisibility of dynamic strides and offsets, and the blocks of a swizzle prove it.
For register tensors alignment does not matter: each contiguous run is one access.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, current_trace, is_dynamic, mlir_type
from basedsl_cute import algebra
from basedsl_cute.algebra import dynamic
from basedsl_cute.algebra.coordinates import compact_col_major
from basedsl_cute.algebra.int_tuple import leaves
from basedsl_cute.dialect import define, note_access
from basedsl_cute.dialect.ops import Load, Store
from basedsl_cute.tensors.pointer import index_value, refuse_tensor_memory, storage_bits
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vector_ops import extract, from_elements, pick, splat, to_elements

WIDEST = 16  # bytes of one access


@dataclass(frozen=True)
class Access:
    """One load or store: the index of its first element, and of each of its elements the positions
    in the vector.
    """

    index: Any
    positions: tuple[tuple[int, ...], ...]


def static_outer(tensor: Tensor) -> Any:
    """The layout of a tensor without what is composed around it. Raises DSLTypeError for a dynamic
    shape.
    """
    outer = tensor.layout
    while isinstance(outer, algebra.ComposedLayout):
        outer = outer.outer
    if not algebra.is_static(outer.shape):
        raise DSLTypeError(
            f"a tensor of dynamic shape, {outer}, is no vector",
            hint="tile it with a static tiler first, index it element by element, or call with "
            "from_dlpack(array), whose shape is static",
        )
    return outer


def accesses(tensor: Tensor, widest: int = WIDEST) -> list[Access]:
    """The accesses to all elements of a tensor, of up to `widest` bytes, each memory element once.

    Raises DSLTypeError for a dynamic shape.
    """
    outer = static_outer(tensor)
    together = _widest(tensor, widest)
    return [
        Access(_index(tensor, dynamic.add(start, first)), positions)
        for start, at in _starts(outer)
        for first, positions in _blocks(outer, at, together, tensor)
    ]


def vector_width(tensor: Tensor) -> int:
    """The number of elements of the narrowest access of `load()` and `store()`."""
    return min(len(access.positions) for access in accesses(tensor))


def _modes(outer: Any) -> list[tuple[int, Any, int]]:
    """The extent, stride in memory and stride in the vector of every leaf mode."""
    flat = (outer.shape, outer.stride, compact_col_major(outer.shape))
    return list(zip(*map(leaves, flat), strict=True))


def _starts(outer: Any) -> Iterator[tuple[Any, int]]:
    """The offset and vector position of every coordinate of the modes with dynamic strides."""
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
    """The first offset and the vector positions of every access, in the modes with static strides.

    `together` is the widest access, or 0 for runs of any length.
    """
    places = _positions(outer, at)
    if tensor.memspace == "rmem" and together == 0:
        runs = _contiguous_runs(places)
    else:
        runs = _aligned_groups(places, together or 1, _in_whole_bytes(tensor))
    return [(run[0], tuple(tuple(places[offset]) for offset in run)) for run in runs]


def _positions(outer: Any, at: int) -> dict[int, list[int]]:
    """The vector positions, from `at` on, of every offset in the modes with static strides."""
    places: dict[int, list[int]] = {0: [at]}
    for extent, stride, step in _modes(outer):
        if is_dynamic(stride):
            continue
        grown: dict[int, list[int]] = {}
        for offset, positions in places.items():
            for c in range(extent):
                grown.setdefault(offset + c * stride, []).extend(p + c * step for p in positions)
        places = grown
    return places


def _contiguous_runs(offsets: Collection[int]) -> list[range]:
    """The offsets as maximal runs of consecutive ones."""
    starts = [offset for offset in sorted(offsets) if offset - 1 not in offsets]
    ends = [offset + 1 for offset in sorted(offsets) if offset + 1 not in offsets]
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]


def _aligned_groups(offsets: Collection[int], widest: int, whole: int) -> list[range]:
    """The offsets as aligned groups of the largest fitting width: `widest`, halved while that is
    a multiple of `whole`, else 1.
    """
    ordered, width = sorted(offsets), widest
    while width > 1 and not _fits(ordered, width):
        width = width // 2 if width >= 2 * whole else 1
    return [range(offset, offset + width) for offset in ordered if offset % width == 0]


def _in_whole_bytes(tensor: Tensor) -> int:
    """The smallest number of elements that fill whole bytes."""
    return 8 // math.gcd(8, storage_bits(tensor.element_type))


def _fits(offsets: list[int], width: int) -> bool:
    """True if the offsets form whole aligned groups of `width`."""
    known = set(offsets)
    return all(o - o % width + i in known for o in offsets for i in range(width))


def _widest(tensor: Tensor, widest: int) -> int:
    """The number of elements of the widest access that alignment allows; 0 for no limit."""
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
    if bits < 8 and 8 % bits:  # four of 6 bits fill three bytes, at any alignment
        together = _in_whole_bytes(tensor)
        known = math.gcd(limit, dynamic.divisibility(pointer.offset))
        return together if known % together == 0 else 1
    if bits < 8 and not dynamic.is_zero(pointer.offset):
        limits.append(dynamic.divisibility(pointer.offset))
    if pointer.space == "rmem" and not limits and bits >= 8:
        return 0
    most = max(1, min(widest, pointer.base_align) * 8 // bits)
    limit = math.gcd(limit, most)
    return limit & -limit


def _block(inner: Any) -> int:
    """The number of consecutive indices that an inner function keeps consecutive; 0 for all."""
    if isinstance(inner, algebra.Swizzle):
        return inner.max_alignment if inner.bits else 0
    return 1


def _index(tensor: Tensor, offset: Any) -> Any:
    """The index behind the tensor's pointer for an offset of the outermost layout."""
    layout, chain = tensor.layout, []
    while isinstance(layout, algebra.ComposedLayout):
        chain.append(layout)
        layout = layout.outer
    for composed in reversed(chain):
        offset = composed.inner(algebra.add_offset(composed.offset, offset))
    return tensor.pointer.index(offset)


# Loading and storing -----------------------------------------------------------------------------


def load_vector(tensor: Tensor, cache: str | None = None, widest: int = WIDEST) -> Any:
    """Emit the loads of all elements, as a vector in colexicographic order of the shape.

    `cache` is the cache modifier of the operation `cute.load`, `widest` the most bytes of an
    access. Raises DSLTypeError for a dynamic shape, and for one without elements.
    """
    trace = current_trace("loading a tensor")
    refuse_tensor_memory(tensor.memspace, "read")
    if not algebra.is_static(tensor.shape):
        accesses(tensor)  # raises
    n = int(algebra.size(tensor.shape))
    if n == 0:
        raise DSLTypeError(f"a tensor of shape {tensor.shape} has no elements to load")
    tensor.check_elements(trace, range(n))
    parts = [
        (access, _load_access(trace, tensor, access, cache)) for access in accesses(tensor, widest)
    ]
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


def store_vector(
    tensor: Tensor, vector: Any, cache: str | None = None, widest: int = WIDEST
) -> None:
    """Emit the stores of all elements from a vector, in accesses of up to `widest` bytes; the last
    element at an address counts.
    """
    trace = current_trace("storing a tensor")
    refuse_tensor_memory(tensor.memspace, "write")
    dialect = define(trace.bindings)
    found = accesses(tensor, widest)
    tensor.check_elements(trace, range(int(algebra.size(tensor.shape))))
    for access in found:
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


def _load_access(trace: Any, tensor: Tensor, access: Access, cache: str | None) -> Any:
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
