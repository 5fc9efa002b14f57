"""The storage types of elements that LLVM has no type for: booleans and narrow floats.

Two 4-bit elements are a byte, four 6-bit elements three bytes. An i1 is a byte (zero is false,
anything else true; written as 0 or 1, as NumPy and PyTorch do), an 8-bit float is its byte, tf32 an
f32 whose low bits do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl import DSLTypeError
from basedsl_cute.dialect.types import memory_bits

if TYPE_CHECKING:
    from basedsl_cute.lowering.kernel.builder import Builder


PACKED_BITS = (4, 6)  # of elements that share bytes, the first in the lowest bits


def element_of(type: Any) -> Any:
    """Return the element type of a vector; a scalar type itself."""
    return getattr(type, "element_type", type)


def is_float(element: Any) -> bool:
    """Return True for every float type, narrow ones included."""
    return str(element).startswith(("f", "bf", "tf"))


def storage_type(b: Builder, element: Any) -> Any:
    """Return the type that elements of `element` are loaded and stored as. Raises DSLTypeError for
    elements that share bytes other than 4- and 6-bit ones.
    """
    found = b.storage_types.get(element)
    if found is None:
        found = b.storage_types[element] = _storage_type(b, element)
    return found


def _storage_type(b: Builder, element: Any) -> Any:
    text = str(element)
    if text == "i1" or text.startswith("f8"):
        return b.i8
    if text == "tf32":
        return b.f32
    if text == "index" or text.startswith("!llvm.ptr"):
        return element
    bits = memory_bits(element)
    if bits in PACKED_BITS:
        return b.ir.IntegerType.get_signless(bits)
    if bits % 8:
        raise DSLTypeError(
            f"elements of type {text} share bytes; single ones cannot be read or written",
            hint="recast the tensor to an 8-bit or wider type",
        )
    return element


def with_element(b: Builder, type: Any, element: Any) -> Any:
    """Return `type` (a scalar or vector type) with another element type."""
    shape = getattr(type, "shape", None)
    return element if shape is None else b.ir.VectorType.get(list(shape), element)


def from_storage(b: Builder, raw: Any, type: Any) -> Any:
    """Convert what was loaded to a value of `type`."""
    if raw.type == type:
        return raw
    text = str(element_of(type))
    if text == "i1":
        ir = b.ir
        zero = ir.IntegerAttr.get(element_of(raw.type), 0)
        if raw.type != element_of(raw.type):
            zero = ir.DenseElementsAttr.get_splat(raw.type, zero)
        none = b.emit("arith.constant", [raw.type], [], {"value": zero})
        return b.emit("arith.cmpi", [type], [raw, none], {"predicate": b.integer(1)})
    if text == "tf32":
        return b.emit("arith.truncf", [type], [raw])
    return b.emit("arith.bitcast", [type], [raw])


def to_storage(b: Builder, value: Any, stored: Any) -> Any:
    """Convert a value to what is stored: the same bits as elements of type `stored`."""
    raw = with_element(b, value.type, stored)
    if raw == value.type:
        return value
    text = str(element_of(value.type))
    if text == "i1":
        return b.emit("arith.extui", [raw], [value])
    if text == "tf32":
        return b.emit("arith.extf", [raw], [value])
    return b.emit("arith.bitcast", [raw], [value])
