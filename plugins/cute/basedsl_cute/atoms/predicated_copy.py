"""Copies of tensors with a predicate for each element, or for each few.

Away from the borders of a problem all predicates hold, and then the elements are copied in wide
accesses; only where one does not hold, each is copied by itself:

    if all predicates hold and the addresses are aligned:  one copy in wide accesses
    else:  for each predicate, if it holds: copy its elements

Alignment that is not known while compiling is looked up in the address and in the strides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import Boolean, Int32, current_trace, is_dynamic
from basedsl_cute import algebra
from basedsl_cute.algebra import dynamic
from basedsl_cute.algebra.int_tuple import flatten_to_tuple
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.tensors.pointer import storage_bits
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vectorized_access import WIDEST, load_vector, store_vector, vector_width


def copy_where(src: Tensor, dst: Tensor, holds: list[Any], one_by_one: Callable[[], None]) -> None:
    """Copy `src` into `dst` where `holds` says so. These are predicates for equal parts, known ones
    as True or False; `one_by_one` emits the copies of the parts.
    """
    if all(one is True for one in holds):
        store_vector(dst, load_vector(src))
        return
    part = int(algebra.size(src.shape)) // len(holds)
    together = _promised(src, part), _promised(dst, part)
    if len(holds) == 1 or any(x is False for x in holds) or any(x is None for x in together):
        one_by_one()
        return
    condition: Any = True
    for one in holds:
        condition = one if condition is True else condition & one
    (wide_src, facts), (wide_dst, more) = together  # type: ignore[misc]
    if facts or more:
        condition = condition & _no_bits([*facts, *more])
    trace = current_trace("a predicated copy")
    create = trace.ir.Operation.create
    branch = trace.emit(create, "scf.if", operands=[condition.ir_value()], regions=2)
    with trace.insertion(branch.regions[0].blocks.append()):
        store_vector(wide_dst, load_vector(wide_src))
        create("scf.yield", loc=trace.loc())
    with trace.insertion(branch.regions[1].blocks.append()):
        one_by_one()
        create("scf.yield", loc=trace.loc())


def copy_parts(sources: list[Tensor], targets: list[Tensor], holds: list[Any]) -> None:
    """Copy each source into its target if its predicate holds."""
    for source, target, one in zip(sources, targets, holds, strict=True):
        if one is not False:
            with predicated(None if one is True else one):
                store_vector(target, load_vector(source))


def _promised(tensor: Tensor, part: int) -> tuple[Tensor, list[tuple[Any, int]]] | None:
    """Return the tensor with the alignment that wide accesses need, and numbers, each with a mask
    of its bits, that are zero if it has that. None if wider accesses than of `part` elements are
    impossible.
    """
    if tensor.memspace == "rmem":
        return tensor, []
    plain = isinstance(tensor.layout, algebra.Layout) and tensor.pointer.swizzle is None
    bits = storage_bits(tensor.element_type)
    if not plain or bits < 8 or not dynamic.is_zero(tensor.pointer.offset):
        return None
    strides = [s for s in flatten_to_tuple(tensor.layout.stride) if is_dynamic(s)]
    bytes_ = WIDEST
    while bytes_ * 8 > part * bits:
        wide = _aligned(tensor, bytes_)
        if vector_width(wide) * bits == bytes_ * 8:
            break
        bytes_ //= 2
    else:
        return None
    count = bytes_ * 8 // bits
    facts = [(stride, count - 1) for stride in strides if dynamic.divisibility(stride) % count]
    if tensor.pointer.base_align < bytes_:
        facts.append((tensor.pointer.toint(), bytes_ - 1))
    return wide, facts


def _aligned(tensor: Tensor, bytes_: int) -> Tensor:
    count = bytes_ * 8 // storage_bits(tensor.element_type)
    layout = tensor.layout
    strides = [dynamic.with_divby(s, count) for s in flatten_to_tuple(layout.stride)]
    stride = algebra.unflatten(tuple(strides), layout.stride)
    return Tensor(tensor.pointer.align(bytes_), algebra.Layout(layout.shape, stride))


def _no_bits(facts: list[tuple[Any, int]]) -> Boolean:
    """Return whether all of these bits are zero."""
    found: Any = None
    for number, mask in facts:
        bits = number.to(Int32) & mask
        found = bits if found is None else found | bits
    result: Boolean = found == 0
    return result
