"""Operands of tcgen05.mma: fragments, descriptors of shared memory, names of element types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from basedsl import (
    BFloat16,
    DSLTypeError,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Int8,
    Int32,
    Int64,
    TFloat32,
    Uint8,
)
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.nvgpu.matrix_descriptor import DescriptorTensor
from basedsl_cute.nvgpu.operand_modes import OperandMajorMode
from basedsl_cute.tensors.make_tensor import make_ptr, make_tensor
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor

# PTX's names of element types, as instruction descriptors have them.
NAMES: dict[Any, str] = {
    Float16: "f16", BFloat16: "bf16", TFloat32: "tf32", Float32: "f32", Int8: "s8", Uint8: "u8",
    Int32: "s32", Float8E4M3FN: "e4m3", Float8E5M2: "e5m2", Float6E2M3FN: "e2m3",
    Float6E3M2FN: "e3m2", Float4E2M1FN: "e2m1",
}  # fmt: skip
SCALE_NAMES: dict[Any, str] = {Float8E8M0FNU: "ue8m0", Float8E4M3FN: "ue4m3"}
_BYTES = (Int8, Uint8)  # tensors of bytes hold elements of 4 and 6 bits that are not packed


def type_name(dtype: Any) -> str:
    """Return the name of an element type for messages."""
    return str(getattr(dtype, "__name__", dtype))


def known_types(formats: Any, names: dict[Any, str] | None = None) -> str:
    """Return the element types whose PTX names are in `formats`, for messages."""
    found = NAMES if names is None else names
    return " or ".join(x.__name__ for x, short in found.items() if short in formats)


def tmem_fragment(dtype: Any, fragment: Any, shape: Any) -> Tensor:
    """Return a tensor at address 0 of tensor memory with the layout of a fragment."""
    return make_tensor(make_ptr(dtype, 0, "tmem"), fragment.layout(shape))


def smem_fragment(op: Any, operand: str, dtype: Any, x: Any, is_k_major: bool) -> DescriptorTensor:
    """Return descriptors of a partitioned operand in shared memory, ((MN, K), MMA_MN, MMA_K, ...).

    Raises DSLTypeError for other memory, elements and layouts.
    """
    if not isinstance(x, Tensor) or x.memspace != "smem":
        raise DSLTypeError(
            f"tcgen05.mma reads {operand} from shared memory: a fragment is made of it, not of {x}",
            hint=f"mma.make_fragment_{operand}(smem_tensor), of shape (MMA, MMA_MN, MMA_K, ..)",
        )
    if x.element_type is not dtype and not (dtype.width < 8 and x.element_type in _BYTES):
        raise DSLTypeError(
            f"{op}: {operand} has elements of {x.element_type.__name__}, not {dtype.__name__}"
        )
    return descriptors(x, is_k_major)


def descriptors(tensor: Tensor, is_k_major: bool) -> DescriptorTensor:
    """Return descriptors of an operand in shared memory; see `smem_fragment`."""
    pointer, layout = tensor.pointer, tensor.layout
    bits = pointer.dtype.width
    if not isinstance(layout, algebra.Layout):
        raise DSLTypeError(
            f"tcgen05.mma needs the swizzle on the pointer, not in the layout {layout}",
            hint="allocate_tensor(dtype, layout.outer, byte_alignment=1024, swizzle=layout.inner)",
        )
    swizzle = pointer.swizzle if pointer.swizzle is not None else algebra.Swizzle(0, 4, 3)
    try:
        found = algebra.operand_descriptor(algebra.get(layout, 0), swizzle, is_k_major, bits)
        steps = algebra.descriptor_layout(layout, bits)
    except algebra.LayoutError as error:
        raise DSLTypeError(
            f"tcgen05.mma cannot read a {'K' if is_k_major else 'MN'}-major operand of {layout}",
            notes=((str(error), None),),
            hint="make the layout with blackwell_helpers.make_smem_layout_a or _b",
        ) from error
    return descriptor_tensor(pointer, found, steps)


def descriptor_tensor(pointer: Any, found: Any, steps: Any) -> DescriptorTensor:
    """Return descriptors with the fields `found` from an address in shared memory on, `steps`
    apart.
    """
    constant = found.constant_bits
    start = ((pointer.toint() >> 4) & 0x3FFF).to(Int64)
    return DescriptorTensor(start | Int64(constant - (constant >> 63 << 64)), steps)


@takes_location
def make_umma_smem_desc(
    src: Pointer, layout: Any, major: Any, next_src: Pointer | None = None
) -> DescriptorTensor:
    """Return the descriptor of an operand in shared memory from `src` on.

    `layout` is that of the (MN, K) of a buffer, or of ((MN, K), ..), in elements of the pointer's
    type and with its swizzle, or the pointer has that; `major` is "k" or "mn". A row of an
    instruction of K = 96 may end in the next buffer, at `next_src`. `make_tensor(descriptor,
    make_layout(1, stride=0))` makes a fragment of one instruction for `mma_atom_call`. Raises
    DSLTypeError for other layouts.
    """
    is_k_major = OperandMajorMode(major) is OperandMajorMode.K
    bits, swizzle = src.dtype.width, src.swizzle
    if isinstance(layout, algebra.ComposedLayout):
        swizzle, layout = algebra.recast_layout(8, bits, layout.inner), layout.outer
    swizzle = swizzle if swizzle is not None else algebra.Swizzle(0, 4, 3)
    whole = layout
    if algebra.rank(layout) > 2:
        layout = algebra.get(layout, 0)
    if algebra.rank(layout) != 2:
        raise DSLTypeError(f"an operand's layout is (MN, K), or ((MN, K), ..), not {whole}")
    if is_k_major:  # one instruction's K: the fields are the same for all
        layout = algebra.composition(layout, (algebra.size(layout.shape, 0), 256 // bits))
    try:
        found = algebra.operand_descriptor(layout, swizzle, is_k_major, bits)
    except algebra.LayoutError as error:
        raise DSLTypeError(
            f"no descriptor of tcgen05 describes a {'K' if is_k_major else 'MN'}-major {whole}",
            notes=((str(error), None),),
        ) from error
    one = algebra.make_layout(1, stride=0)
    if next_src is None:
        return descriptor_tensor(src, found, one)
    # The address itself of what follows, instead of its distance (bit 52).
    made = descriptor_tensor(src, replace(found, leading=0), one)
    following = ((next_src.toint() >> 4) & 0x3FFF).to(Int64)
    return DescriptorTensor(made.start | following << 16 | Int64(1 << 52), one)


def operand_address(x: Any, offset: Any) -> Any:
    """Return one instruction's operand: a descriptor, or a pointer."""
    return x.start + offset if isinstance(x, DescriptorTensor) else x.pointer.moved(offset)


__all__ = [
    "NAMES",
    "SCALE_NAMES",
    "descriptor_tensor",
    "descriptors",
    "known_types",
    "make_umma_smem_desc",
    "operand_address",
    "smem_fragment",
    "tmem_fragment",
    "type_name",
]
