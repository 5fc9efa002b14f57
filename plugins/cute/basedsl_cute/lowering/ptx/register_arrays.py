"""Whole arrays of registers that are filled, copied or converted, a few elements at a time.

    weights.store(scores.load().to(Float16))

Tensors in registers are slots of the thread's stack, which LLVM's SROA makes into values. Where one
access takes all of a slot, the value is a vector of all elements, and each access to an element is
taken out of it or put into it: InstCombine takes time that grows with the square of their number
(a quarter of the compile time of attention). Accesses of 8 bytes leave no value above 8 bytes.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.lowering.kernel.builder import Builder

_BITS = 64
_LEAST_BITS = 128  # of a vector that is split
_CONVERSIONS = frozenset(("arith.extf", "arith.truncf"))


def split_store(b: Builder, op: Any) -> bool:
    """Replace the `llvm.store` `op` by several if it fills, copies or converts an array of
    registers. Returns False if it does not; True if `op` may be erased.
    """
    value, target = op.operands[0], op.operands[1]
    length, element = _array_of(value.type)
    if length * getattr(element, "width", 0) <= _LEAST_BITS or not _is_on_stack(target):
        return False
    source: Any = value.owner
    conversion = None
    if getattr(source, "name", "") in _CONVERSIONS:
        conversion, source = source, source.operands[0].owner
    name = getattr(source, "name", "")
    if name == "vector.broadcast" and conversion is None:
        filling = source.operands[0]
        if filling.type != element:
            return False
        for start, count in _parts(length, element.width):
            part = filling
            if count > 1:
                part = b.emit("vector.broadcast", [_type(b, element, count)], [filling])
            _store(b, op, part, target, element, start)
        return True
    if name != "llvm.load" or "volatile_" in source.attributes:
        return False
    _, held = _array_of(source.results[0].type)
    if not _is_on_stack(source.operands[0]):
        return False
    parts = _parts(length, max(element.width, held.width))
    b.at(source)
    loaded = [
        b.emit(
            "llvm.load",
            [_type(b, held, count)],
            [_address(b, source.operands[0], held, start)],
            {"alignment": source.attributes["alignment"]},
        )
        for start, count in parts
    ]
    b.at(op)
    for (start, count), part in zip(parts, loaded, strict=True):
        if conversion is not None:
            attributes = {one.name: one.attr for one in conversion.attributes}
            part = b.emit(conversion.name, [_type(b, element, count)], [part], attributes)
        _store(b, op, part, target, element, start)
    return True


def _array_of(type: Any) -> tuple[int, Any]:
    """Return the length and the element type of a vector of one dimension; 0 for other types."""
    shape: Any = getattr(type, "shape", ())
    return (shape[0], type.element_type) if len(shape) == 1 else (0, None)


def _is_on_stack(pointer: Any) -> bool:
    """Return True for an address in the thread's stack, at a constant offset."""
    owner = pointer.owner
    while getattr(owner, "name", "") == "llvm.getelementptr" and len(owner.operands) == 1:
        owner = owner.operands[0].owner
    return getattr(owner, "name", "") == "llvm.alloca"


def _parts(length: int, width: int) -> list[tuple[int, int]]:
    """Return start and length of each part of `length` elements of `width` bits."""
    most = max(1, _BITS // width)
    return [(start, min(most, length - start)) for start in range(0, length, most)]


def _type(b: Builder, element: Any, count: int) -> Any:
    return element if count == 1 else b.ir.VectorType.get([count], element)


def _store(b: Builder, op: Any, part: Any, target: Any, element: Any, start: int) -> None:
    place = _address(b, target, element, start)
    b.emit("llvm.store", [], [part, place], {"alignment": op.attributes["alignment"]})


def _address(b: Builder, pointer: Any, element: Any, index: int) -> Any:
    """Compute the address `index` elements behind `pointer`."""
    if not index:
        return pointer
    attributes = {
        "elem_type": b.ir.TypeAttr.get(element),
        "rawConstantIndices": b.ir.DenseI32ArrayAttr.get([index]),
    }
    return b.emit("llvm.getelementptr", [pointer.type], [pointer], attributes)
