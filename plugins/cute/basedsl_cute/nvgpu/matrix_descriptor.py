"""Matrix descriptors of wgmma: 64 bits that describe an operand in shared memory.

PTX ISA 9.7.15.5.1, "Matrix Descriptor Format": bits 0-13 start address, 16-29 leading and 32-45
stride dimension byte offset, all divided by 16; bits 62-63 the swizzle (none, 128, 64, 32 bytes).
The meaning of the offsets depends on the major mode; the formulas are those of the canonical
layouts in the public CuTe C++ header `mma_sm90_desc.hpp`, in units of 16 bytes:

    K-major   none ((8,n),2):((1,SBO),LBO)      swizzled ((8,n),2):((w,SBO),1)
    MN-major  none ((1,n),(8,k)):((X,SBO),(1,LBO))   swizzled ((w,n),(8,k)):((1,LBO),(w,SBO))

with w the swizzle's width: 2, 4 or 8.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Int64
from basedsl_cute import algebra
from basedsl_cute.algebra import dynamic
from basedsl_cute.tensors.tensor import Tensor

_TYPE_OF_SWIZZLE = {0: 0, 3: 1, 2: 2, 1: 3}


@dataclass(frozen=True)
class Canonical:
    """The byte offsets of a canonical layout; `swizzle_bits` is log2 of its width in 16 bytes."""

    leading: int
    stride: int
    swizzle_bits: int

    @property
    def constant_bits(self) -> int:
        """The descriptor without its address."""
        kind = _TYPE_OF_SWIZZLE[self.swizzle_bits]
        return (self.leading >> 4) << 16 | (self.stride >> 4) << 32 | kind << 62


@functools.lru_cache(maxsize=256)
def canonical(layout: Any, swizzle_bits: int, is_k_major: bool, bits: int) -> Canonical:
    """Return the offsets that describe `layout`, the (MN, K) of one instruction in elements of
    `bits`.

    Raises DSLTypeError unless it is a canonical layout with this swizzle.
    """
    rows, k = (algebra.size(layout.shape, mode) for mode in (0, 1))
    unit = 128 // bits

    def at(mn: int, kk: int) -> int:
        return int(layout((mn, kk))) * bits // 8

    width = 1 << swizzle_bits  # units of 16 bytes
    if is_k_major:
        stride = at(8, 0) if rows > 8 else 128 * width
        leading = at(0, unit) if not swizzle_bits else 16

        def expected(mn: int, kk: int) -> int:
            across = kk // unit * (16 if swizzle_bits else leading)
            return mn % 8 * 16 * width + mn // 8 * stride + across

        steps = (1, unit)
    elif swizzle_bits:
        leading = at(unit * width, 0) if rows > unit * width else 128 * width
        stride = at(0, 8) if k > 8 else 128 * width

        def expected(mn: int, kk: int) -> int:
            column = mn // unit
            across = column % width * 16 + column // width * leading
            return across + kk % 8 * 16 * width + kk // 8 * stride

        steps = (unit, 1)
    else:
        stride = at(unit, 0) if rows > unit else 128
        leading = at(0, 8) if k > 8 else 128

        def expected(mn: int, kk: int) -> int:
            return mn // unit * stride + kk % 8 * 16 + kk // 8 * leading

        steps = (unit, 1)
    contiguous = at(0, 1) if is_k_major else at(1, 0)
    fits = contiguous * 8 == bits and all(
        at(mn, kk) == expected(mn, kk)
        for mn in range(0, rows, steps[0])
        for kk in range(0, k, steps[1])
    )
    if not fits:
        major = "K" if is_k_major else "MN"
        raise DSLTypeError(
            f"wgmma cannot read a {major}-major operand of layout {layout}",
            notes=((f"its swizzle: {16 * width} bytes" if swizzle_bits else "no swizzle", None),),
            hint="make the layout with hopper_helpers.make_smem_layout_a or _b",
        )
    return Canonical(leading, stride, swizzle_bits)


class DescriptorTensor:
    """An operand in shared memory as wgmma takes it: a descriptor for each (MMA_M, MMA_K, ...).

    Mode 0 stands for the values of one instruction; the others step through the operand. Indexing
    works as with tensors, and results in such a tensor again.
    """

    __slots__ = ("layout", "start")

    def __init__(self, start: Any, layout: Any) -> None:
        self.start = start
        self.layout = layout

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self.start,)

    def __dsl_static__(self) -> Any:
        return str(self.layout)

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> DescriptorTensor:
        return DescriptorTensor(parts[0], self.layout)

    @property
    def shape(self) -> Any:
        """The shape of the layout."""
        return self.layout.shape

    def __getitem__(self, coord: Any) -> DescriptorTensor:
        layout, offset = algebra.slice_and_offset(_whole(coord), self.layout)
        if not (type(offset) is int and offset == 0):
            start = self.start + (offset if type(offset) is int else offset.to(Int64))
            return DescriptorTensor(start, layout)
        return DescriptorTensor(self.start, layout)

    def __with_layout__(self, layout: Any) -> DescriptorTensor:
        """Return the same descriptors in another order: `cute.make_tensor(descriptors, layout)`."""
        return DescriptorTensor(self.start, layout)

    def __str__(self) -> str:
        return f"descriptors<{self.layout}>"


def _whole(coord: Any) -> Any:
    from basedsl_cute.tensors.coordinate import as_index

    return as_index(coord)


def descriptors(tensor: Tensor, is_k_major: bool) -> DescriptorTensor:
    """Return descriptors of a partitioned operand in shared memory, ((MN, K), MMA_MN, MMA_K, ...).

    Raises DSLTypeError for other memory and for layouts that no descriptor describes.
    """
    pointer, layout = tensor.pointer, tensor.layout
    if pointer.space != "smem":
        raise DSLTypeError(f"wgmma reads operands from shared memory, not from {pointer.space}")
    bits = pointer.dtype.width
    swizzle_bits = 0
    if pointer.swizzle is not None:
        swizzle = pointer.swizzle
        if (swizzle.base, swizzle.shift) != (4, 3) or not 0 <= swizzle.bits <= 3:
            raise DSLTypeError(f"wgmma knows no operand swizzled by {swizzle}")
        swizzle_bits = swizzle.bits
    if not isinstance(layout, algebra.Layout):
        raise DSLTypeError(f"wgmma needs the swizzle on the pointer, not in the layout {layout}")
    first = algebra.get(layout, 0)
    shape = canonical(first, swizzle_bits, is_k_major, bits)
    rest = algebra.Layout((1, *layout.shape[1:]), (0, *_units(layout.stride[1:], bits)))
    address = pointer.toint()
    start = ((address >> 4) & 0x3FFF).to(Int64)
    constant = shape.constant_bits
    if constant >= 1 << 63:
        constant -= 1 << 64
    return DescriptorTensor(start | Int64(constant), rest)


def _units(stride: Any, bits: int) -> Any:
    """Return strides in elements as strides in 16 bytes."""
    if isinstance(stride, tuple):
        return tuple(_units(d, bits) for d in stride)
    if dynamic.divisibility(stride) * bits % 128 and not dynamic.is_zero(stride):
        raise DSLTypeError(f"a stride of {stride} elements is no multiple of 16 bytes")
    return stride * bits // 128
