"""One copy instruction: proof that its elements are consecutive and aligned, and its emission.

`contiguous_piece` gives the elements of a tensor as one aligned piece of memory, `emit_copy` copies
between two such pieces, and `unproven` is the error that names the missing fact. The loop over a
tensor's pieces is in `copy_tensors`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from basedsl import Boolean, DSLTypeError, current_trace, is_dynamic, user_span, with_article
from basedsl_cute import algebra
from basedsl_cute.algebra import dynamic
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import Copy, Recast, View
from basedsl_cute.tensors.pointer import index_value, memref_type, storage_bits
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vectorized_access import WIDEST, accesses, load_vector, store_vector


def check_elements(source: Tensor, target: Tensor, what: str) -> None:
    """Raise DSLTypeError unless both are tensors in memory with the same element type."""
    for name, tensor in (("source", source), ("destination", target)):
        if not isinstance(tensor, Tensor):
            raise DSLTypeError(f"{what}: the {name} is {with_article(type(tensor))}, not a tensor")
        if not tensor.has_memory:
            raise DSLTypeError(f"{what}: the {name} {tensor} has no memory")
    if source.element_type is not target.element_type:
        raise DSLTypeError(
            f"{what} from {source.element_type.__name__} to {target.element_type.__name__}: "
            "a copy converts nothing",
            hint="dst.store(src.load().to(dst.element_type)) converts",
        )


def contiguous_piece(tensor: Tensor, bits: int, align: int | None = None) -> Any:
    """The IR value of all elements of a tensor as one memref of `bits` bits, aligned to `align`
    bytes (its size by default); None if contiguity or alignment is not proven. The shape is static.
    """
    found = accesses(tensor, max(WIDEST, bits // 8))
    n = bits // storage_bits(tensor.element_type)
    if len(found) != 1 or found[0].positions != tuple((i,) for i in range(n)):
        return None
    pointer = tensor.pointer
    align = bits // 8 if align is None else align
    index = found[0].index
    at_start = type(index) is int and index == 0
    if tensor.memspace == "rmem" and not (at_start and pointer.base_align >= align):
        return None
    trace = current_trace("a copy")
    dialect = define(trace.bindings)
    layout = algebra.make_layout(n)
    kind = memref_type(trace, tensor.element_type, pointer.space, layout, align)
    value = pointer.address.ir_value()
    if at_start:
        if value.type == kind:
            return value
        return Recast(dialect, source=value, type=kind, loc=trace.loc()).view
    offset = index_value(index)
    return View(dialect, source=value, offset=offset, type=kind, loc=trace.loc()).view


def emit_copy(
    source: Tensor,
    target: Tensor,
    bits: int,
    predicate: Any = None,
    *,
    atom: str = "universal",
    cache: str | None = None,
    name: str = "the copy",
) -> None:
    """Emit one copy of `bits` bits of consecutive elements, under `predicate` (a Boolean or None).

    Elements in registers may lie in any order. Raises DSLTypeError where elements in memory are not
    known to be consecutive and aligned; `name` begins the message.
    """
    pieces = []
    for tensor in (source, target):
        piece = contiguous_piece(tensor, bits)
        if piece is None and (tensor.memspace != "rmem" or atom != "universal"):
            raise unproven(name, tensor, bits)
        pieces.append(piece)
    trace = current_trace("a copy")
    if any(piece is None for piece in pieces):
        with predicated(predicate):
            widest = max(WIDEST, bits // 8)
            store_vector(target, load_vector(source, widest=widest), widest=widest)
        return
    holds = None if predicate is None else predicate.ir_value()
    Copy(
        define(trace.bindings),
        source=pieces[0],
        target=pieces[1],
        predicate=holds,
        atom=atom,
        bits=bits,
        cache=cache,
        loc=trace.loc(),
    )


@contextmanager
def predicated(predicate: Any) -> Iterator[None]:
    """Emit the block under `scf.if` of a predicate; without it if `predicate` is None."""
    if predicate is None:
        yield
        return
    trace = current_trace("a predicated copy")
    create = trace.ir.Operation.create
    branch = trace.emit(create, "scf.if", operands=[predicate.ir_value()], regions=2)
    with trace.insertion(branch.regions[0].blocks.append()):
        yield
        create("scf.yield", loc=trace.loc())


def as_predicate(value: Any) -> Any:
    """The predicate as a dynamic Boolean, or as True or False if it is known; else DSLTypeError."""
    if isinstance(value, Boolean) and is_dynamic(value):
        return value
    if type(value) is bool:
        return value
    if isinstance(value, Boolean):
        return bool(value.value)
    raise DSLTypeError(
        f"a predicate is a Boolean, not {with_article(getattr(type(value), '__name__', value))}",
        hint="make the tensor of predicates with dtype Boolean",
    )


# Which fact is missing ---------------------------------------------------------------------------


class _Missing(NamedTuple):
    """An unproven requirement of an instruction, and a hint. The instruction's name is the subject
    of `need`.
    """

    need: str
    hint: str | None = None


_SMALLER = "or copy fewer bits at once: num_bits_per_copy="


def unproven(name: str, tensor: Tensor, bits: int) -> DSLTypeError:
    """Return the error for a tensor that is not known to be one aligned piece of `bits`.

    `name` is the instruction, for the message.
    """
    n = bits // storage_bits(tensor.element_type)
    missing = _missing(tensor, n, bits // 8)
    notes = (
        (f"it moves {bits} bits at once: {n} x {tensor.element_type.__name__}", None),
        (f"the tensor is {tensor}", None),
    )
    return DSLTypeError(f"{name} {missing.need}", user_span(), hint=missing.hint, notes=notes)


def _missing(tensor: Tensor, n: int, nbytes: int) -> _Missing:
    layout = tensor.layout
    while isinstance(layout, algebra.ComposedLayout):
        block = algebra.max_alignment(layout.inner) if _is_swizzle(layout.inner) else 1
        if block and block % n:
            return _parted(layout.inner, block, n)
        layout = layout.outer
    flat = algebra.coalesce(layout)
    if algebra.size(flat) != n:
        return _Missing(f"takes {n} elements, and this tensor has {algebra.size(flat)}")
    if flat.shape != n or not (type(flat.stride) is int and flat.stride == 1):
        return _Missing(
            f"needs {n} consecutive elements; those of {layout} are not",
            "order the value layout along the contiguous mode, or take a smaller num_bits_per_copy",
        )
    pointer = tensor.pointer
    if pointer.swizzle is not None:
        swizzle = algebra.recast_layout(storage_bits(pointer.dtype), 8, pointer.swizzle)
        if swizzle.max_alignment % n:
            return _parted(pointer.swizzle, swizzle.max_alignment, n)
        if dynamic.divisibility(pointer.offset) % n:
            return _indivisible(math.gcd(dynamic.divisibility(pointer.offset), n), n)
    return _unaligned(pointer, n, nbytes)


def _is_swizzle(inner: Any) -> bool:
    return isinstance(inner, algebra.Swizzle)


def _parted(swizzle: Any, block: int, n: int) -> _Missing:
    return _Missing(
        f"needs {n} elements together; the swizzle {swizzle} keeps only {block} together",
        "take a swizzle with a larger base, or a smaller num_bits_per_copy",
    )


def _indivisible(known: int, n: int) -> _Missing:
    return _Missing(
        f"needs an offset known to be divisible by {n} elements, not only by {known}",
        "tell the divisibility of dynamic extents and strides: mark_compact_shape_dynamic("
        f"divisibility=), or cute.assume(x, divby=); {_SMALLER}",
    )


def _unaligned(pointer: Any, n: int, nbytes: int) -> _Missing:
    """Follow the address back to where it was still aligned."""
    dialect = define(current_trace("a copy").bindings)
    value = pointer.address.ir_value()
    memref = dialect.record(value.type)
    assert memref is not None
    known = memref.alignment
    while True:
        owner: Any = getattr(value, "owner", None)
        name = getattr(owner, "name", "")
        if name not in ("cute.view", "cute.recast"):
            break
        source = owner.operands[0]
        record = dialect.record(source.type)
        if record is not None and record.alignment >= nbytes and name == "cute.view":
            return _indivisible(max(1, known * 8 // record.element_bits), n)
        value = source
    return _Missing(
        f"needs memory known to be aligned to {nbytes} bytes, not only to {known}",
        "from_dlpack(x, assumed_align=), allocate_tensor(byte_alignment=), or pointer.align(); "
        f"{_SMALLER}",
    )
