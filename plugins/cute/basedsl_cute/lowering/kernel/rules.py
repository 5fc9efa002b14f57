"""What each cute op becomes: the table `RULES` for the step `lower-cute`.

Only ops that the simulator and the PTX path both take come out of here; what only PTX can say
(cache operators, conversions of narrow floats) is marked with attributes and done by
`lowering.ptx_only`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.objectstage import span_of_location
from basedsl_cute.dialect import MemRef, Operands
from basedsl_cute.dialect.atoms import COPY_ATOMS
from basedsl_cute.dialect.attributes import CACHE_ATTRIBUTE, FIELDS_ATTRIBUTE
from basedsl_cute.lowering.kernel import packed, tensor_map_update, warp_matrix, warpgroup
from basedsl_cute.lowering.kernel.rewriter import SMEM_ALIGNMENT, Rewriter, Rule, RuleFunction
from basedsl_cute.lowering.kernel.storage import (
    element_of,
    from_storage,
    is_float,
    storage_type,
    to_storage,
    with_element,
)
from basedsl_cute.lowering.required import require

RULES: dict[str, Rule] = {}

# On a variable in shared memory: the fields of the struct that it is.

# LLVM's enums AtomicOrdering and AtomicBinOp, as the llvm dialect numbers them.
_ORDERINGS = {"relaxed": 2, "acquire": 4, "release": 5, "acq_rel": 6}
_CAS_FAILURE = {"relaxed": 2, "acquire": 4, "release": 2, "acq_rel": 4}
_INTEGER_ATOMICS = {
    "xchg": 0, "add": 1, "and": 3, "or": 5, "xor": 6, "max": 7, "min": 8, "umax": 9, "umin": 10,
}  # fmt: skip
_FLOAT_ATOMICS = {"xchg": 0, "add": 11, "fadd": 11, "max": 13, "min": 14}
# NVPTX's names of synchronisation scopes (LLVM, "NVPTX memory model").
_SCOPES = {"cta": "block", "cluster": "cluster", "gpu": "device", "sys": ""}


def rule(op: str, *, reads_types: bool = False) -> Callable[[RuleFunction], RuleFunction]:
    """Enter a function into the table."""

    def enter(function: RuleFunction) -> RuleFunction:
        RULES[op] = Rule(op=op, lower=function, reads_types=reads_types)
        return function

    return enter


# Loads and stores --------------------------------------------------------------------------------


@rule("cute.load")
def load(b: Rewriter, op: Operands) -> Any:
    """getelementptr, `llvm.load`; an i1 or a narrow float is read as the bytes it is kept in.

    With `if_used` (a struct's number, of which perhaps only the address was asked for) nothing is
    read if nothing uses it.
    """
    if "if_used" in op.op.attributes and next(iter(op.value.uses), None) is None:
        return None
    element = element_of(op.value.type)
    stored = storage_type(b, element)
    if packed.is_packed(stored):
        return from_storage(b, packed.load(b, op, stored, _access(b, op, b.i8)), op.value.type)
    address = b.element_pointer(op.memref, op.index, stored)
    raw_type = with_element(b, op.value.type, stored)
    raw = b.emit("llvm.load", [raw_type], [address], _access(b, op, stored))
    return from_storage(b, raw, op.value.type)


@rule("cute.store")
def store(b: Rewriter, op: Operands) -> None:
    """getelementptr, `llvm.store`."""
    stored = storage_type(b, element_of(op.value.type))
    raw = to_storage(b, op.value, stored)
    if packed.is_packed(stored):
        packed.store(b, op, raw, _access(b, op, b.i8))
        return
    address = b.element_pointer(op.memref, op.index, stored)
    b.emit("llvm.store", [], [raw, address], _access(b, op, stored))


@rule("cute.atomic_rmw")
def atomic_rmw(b: Rewriter, op: Operands) -> Any:
    """`llvm.atomicrmw`."""
    element = op.value.type
    kind = op.text("kind") or ""
    table = _FLOAT_ATOMICS if is_float(element) else _INTEGER_ATOMICS
    if kind not in table or storage_type(b, element) != element:
        raise DSLTypeError(f"there is no atomic {kind!r} on {element}", span=_span(op))
    address = b.element_pointer(op.memref, op.index, element)
    attributes = {
        "bin_op": b.integer(table[kind]),
        "ordering": b.integer(_ORDERINGS[op.text("order", "relaxed") or ""]),
        "syncscope": b.ir.StringAttr.get(_SCOPES[op.text("scope", "gpu") or ""]),
        "alignment": b.integer(max(1, element.width // 8)),
    }
    return b.emit("llvm.atomicrmw", [element], [address, op.value], attributes)


@rule("cute.atomic_cas")
def atomic_cas(b: Rewriter, op: Operands) -> Any:
    """`llvm.cmpxchg` and the first field of what it gives; a float goes as its bits."""
    ir = b.ir
    element = op.value.type
    bits = ir.IntegerType.get_signless(element.width)
    if element.width < 16 or storage_type(b, element) != element:
        raise DSLTypeError(f"there is no atomic compare-and-swap on {element}", span=_span(op))
    expected, value = op.expected, op.value
    if is_float(element):
        expected = b.emit("arith.bitcast", [bits], [expected])
        value = b.emit("arith.bitcast", [bits], [value])
    address = b.element_pointer(op.memref, op.index, element)
    order = op.text("order", "relaxed") or ""
    attributes = {
        "success_ordering": b.integer(_ORDERINGS[order]),
        "failure_ordering": b.integer(_CAS_FAILURE[order]),
        "syncscope": ir.StringAttr.get(_SCOPES[op.text("scope", "gpu") or ""]),
        "alignment": b.integer(element.width // 8),
    }
    pair = ir.Type.parse(f"!llvm.struct<({bits}, i1)>")
    both = b.emit("llvm.cmpxchg", [pair], [address, expected, value], attributes)
    first = {"position": ir.DenseI64ArrayAttr.get([0])}
    old = b.emit("llvm.extractvalue", [bits], [both], first)
    return b.emit("arith.bitcast", [element], [old]) if is_float(element) else old


# Tensors from tensors ----------------------------------------------------------------------------


@rule("cute.view")
def view(b: Rewriter, op: Operands) -> Any:
    """getelementptr; nothing for a constant zero is left by canonicalisation."""
    stored = storage_type(b, _record(op, op.view).element)
    if packed.is_packed(stored):
        return packed.pointer(b, op.source, op.offset, stored)
    return b.element_pointer(op.source, op.offset, stored)


@rule("cute.recast")
def recast(b: Rewriter, op: Operands) -> Any:
    """Nothing: the address stays."""
    return op.source


@rule("cute.iterator")
def iterator(b: Rewriter, op: Operands) -> Any:
    """Nothing in a kernel, where a lowered tensor is its address."""
    return b.cast(op.source, op.pointer.type)


@rule("cute.make_memref")
def make_memref(b: Rewriter, op: Operands) -> Any:
    """Nothing in a kernel, where a lowered tensor is its address."""
    return b.cast(op.pointer, b.lowered_type(op.memref.type))


# Memory of a block, of a thread ------------------------------------------------------------------


@rule("cute.alloc_smem")
def alloc_smem(b: Rewriter, op: Operands) -> Any:
    """A global in address space 3, or a place in dynamic shared memory if the kernel's sum is
    beyond what a kernel may have statically.
    """
    assert b.function is not None
    record = _record(op, op.memref)
    align = max(record.alignment, SMEM_ALIGNMENT)
    if b.function.dynamic_bytes:
        offset = b.function.next_offset()
        if b.target == "sim":
            b.name_dynamic_smem(offset, op.text("name"), op.text("fields"), _span(op))
        return b.byte_pointer(b.dynamic_smem_base(), offset)
    symbol = b.function.next_symbol(op.text("name", "smem") or "smem")
    made = b.global_array(symbol, op.integer("bytes") or 0, align, "internal")
    fields = op.text("fields")
    if fields:
        made.attributes[FIELDS_ATTRIBUTE] = b.ir.StringAttr.get(fields)
    return b.address_of(symbol)


@rule("cute.dynamic_smem")
def dynamic_smem(b: Rewriter, op: Operands) -> Any:
    """The external array that PTX gives the launch's bytes (PTX ISA 5.4.1, "extern .shared"),
    behind what `alloc_smem` has moved there.
    """
    assert b.function is not None
    return b.byte_pointer(b.dynamic_smem_base(), b.function.dynamic_bytes)


@rule("cute.alloc_rmem")
def alloc_rmem(b: Rewriter, op: Operands) -> Any:
    """A stack slot at the function's entry, which LLVM promotes to registers."""
    ir = b.ir
    record = _record(op, op.memref)
    stored = storage_type(b, record.element)
    if packed.is_packed(stored):
        stored = b.i8
    count = -(-(op.integer("bytes") or 0) * 8 // stored.width)
    array = ir.Type.parse(f"!llvm.array<{count} x {stored}>")
    attributes = {"elem_type": ir.TypeAttr.get(array), "alignment": b.integer(record.alignment)}
    with b.at_entry():
        one = b.constant(1, b.i64)
        return b.emit("llvm.alloca", [b.pointer(0)], [one], attributes)


# Atoms -------------------------------------------------------------------------------------------


@rule("cute.copy", reads_types=True)
def copy(b: Rewriter, op: Operands) -> None:
    """ "universal": a load and a store as wide as the copy, under `scf.if` with a predicate.
    "cp_async": `nvvm.cp.async.shared.global`, a false predicate making its source size zero.
    "ldmatrix", "stmatrix": the instruction, and the accesses of its registers.
    """
    name = op.text("atom") or ""
    require(COPY_ATOMS[name].requirement, b.target, op.op)
    _COPIES[name.partition("_x")[0]](b, op)


def _copy_universal(b: Rewriter, op: Operands) -> None:
    ir = b.ir
    source = b.records[0]
    assert source is not None
    bits = op.integer("bits") or 0
    stored = storage_type(b, source.element)
    if packed.is_packed(stored):
        stored = b.i8
    width = stored.width
    kind = stored if width == bits else ir.VectorType.get([bits // width], stored)
    alignment = {"alignment": b.integer(bits // 8)}
    cache = op.cache
    loading = alignment if cache is None else {**alignment, CACHE_ATTRIBUTE: cache}

    def move() -> None:
        value = b.emit("llvm.load", [kind], [op.source], loading)
        b.emit("llvm.store", [], [value, op.target], alignment)

    if op.predicate is None:
        move()
        return
    branch = b.emit("scf.if", [], [op.predicate], regions=2)
    with b.inside(branch.regions[0].blocks.append()):
        move()
        b.emit("scf.yield")


def _copy_async(b: Rewriter, op: Operands) -> None:
    size = (op.integer("bits") or 0) // 8
    cache = op.text("cache", "cg" if size == 16 else "ca")
    operands = [op.target, op.source]
    if op.predicate is not None:
        full, nothing = b.constant(size), b.constant(0)
        operands.append(b.emit("arith.select", [b.i32], [op.predicate, full, nothing]))
    attributes = {
        "size": b.integer(size, 32),
        "modifier": b.ir.Attribute.parse(f"#nvvm<load_cache_modifier {cache}>"),
    }
    b.emit("nvvm.cp.async.shared.global", [], operands, attributes)


_COPIES = {
    "universal": _copy_universal,
    "cp_async": _copy_async,
    "ldmatrix": warp_matrix.load_matrix,
    "ldmatrix_b8": warp_matrix.load_byte_matrix,
    "stmatrix": warp_matrix.store_matrix,
}


@rule("cute.gemm", reads_types=True)
def gemm(b: Rewriter, op: Operands) -> None:
    """ "universal_fma": `math.fma` on the elements at the four addresses; others: `mma.sync`."""
    if op.text("atom") != "universal_fma":
        warp_matrix.multiply(b, op)
        return
    record = b.records[0]
    assert record is not None
    element = record.element
    a, x, c = (b.emit("llvm.load", [element], [m]) for m in (op.a, op.b, op.c))
    if is_float(element):
        value = b.emit("math.fma", [element], [a, x, c])
    else:
        value = b.emit("arith.addi", [element], [b.emit("arith.muli", [element], [a, x]), c])
    b.emit("llvm.store", [], [value, op.d])


@rule("cute.wgmma")
def wgmma(b: Rewriter, op: Operands) -> None:
    """The same op on addresses of registers, for the simulator and for `ptx-only`."""
    warpgroup.keep(b, op)


@rule("cute.tensormap_replace")
def tensormap_replace(b: Rewriter, op: Operands) -> None:
    """The same op, for the simulator and for `ptx-only`."""
    tensor_map_update.keep(b, op)


@rule("cute.dsmem_store")
def dsmem_store(b: Rewriter, op: Operands) -> None:
    """The same op, for the simulator and for `ptx-only`."""
    tensor_map_update.keep(b, op)


@rule("cute.tensormap_release")
def tensormap_release(b: Rewriter, op: Operands) -> None:
    """The same op, for the simulator and for `ptx-only`."""
    tensor_map_update.keep(b, op)


# Threads together --------------------------------------------------------------------------------


@rule("cute.barrier")
def barrier(b: Rewriter, op: Operands) -> None:
    """`nvvm.barrier`, with an id and a thread count if given."""
    number, count = op.integer("id"), op.integer("count")
    operands = []
    if number is not None or count is not None:
        operands.append(b.constant(number or 0))
    if count is not None:
        operands.append(b.constant(count))
    segments = [int(len(operands) > 0), int(len(operands) > 1), 0]
    sizes = b.ir.DenseI32ArrayAttr.get(segments)
    b.emit("nvvm.barrier", [], operands, {"operandSegmentSizes": sizes})


# What rules share --------------------------------------------------------------------------------


def _record(op: Operands, value: Any) -> MemRef:
    """What the type of an op's own result says (operands are addresses by now)."""
    record: MemRef | None = op.dialect.record(value.type)
    assert record is not None, value.type
    return record


def _access(b: Rewriter, op: Operands, stored: Any) -> dict[str, Any]:
    given = op.op.attributes
    if len(given) == 0:
        return {"alignment": b.integer(max(1, getattr(stored, "width", 64) // 8))}
    alignment = op.integer("alignment", max(1, getattr(stored, "width", 64) // 8)) or 1
    attributes: dict[str, Any] = {"alignment": b.integer(alignment)}
    if "volatile" in given:
        attributes["volatile_"] = b.ir.UnitAttr.get()
    if "order" in given:
        attributes["ordering"] = b.integer(_ORDERINGS[op.text("order") or ""])
        attributes["syncscope"] = b.ir.StringAttr.get(_SCOPES[op.text("scope", "gpu") or ""])
    cache = op.text("cache")
    if cache == "nc" and op.spec.name == "load":
        attributes["invariant"] = b.ir.UnitAttr.get()
    elif cache is not None:
        attributes[CACHE_ATTRIBUTE] = op.cache
    return attributes


def _span(op: Operands) -> Any:
    return span_of_location(op.op.location)
