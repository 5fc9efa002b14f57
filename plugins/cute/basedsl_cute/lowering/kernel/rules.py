"""The table `RULES` of the step `lower-cute`: the lowering of each cute operation.

Rules emit only operations that the simulator and the PTX path both take. Cache operators and
conversions of narrow floats, which only PTX has, are marked with attributes; the step `ptx-only`
(`lowering.ptx.ptx_only`) lowers them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Erase, Keep, PipelineContext, Replace, RuleResult, RuleTable
from basedsl_cute.algebra.tmem import TMEM_COLUMN_BITS
from basedsl_cute.dialect import CuteOp
from basedsl_cute.dialect.atoms import COPY_ATOMS, mma_atom
from basedsl_cute.dialect.attributes import CACHE_ATTRIBUTE, FIELDS_ATTRIBUTE, SMEM_ALIGNMENT
from basedsl_cute.dialect.ops import (
    AllocRmem,
    AllocSmem,
    AtomicCAS,
    AtomicRMW,
    Barrier,
    Copy,
    DynamicSmem,
    Gemm,
    Load,
    MakeMemRef,
    Recast,
    Store,
    TensorIterator,
    View,
)
from basedsl_cute.dialect.warpgroup import PtxWgmma, Wgmma
from basedsl_cute.hardware.requirements import WGMMA
from basedsl_cute.lowering.kernel import packed, warp_matrix
from basedsl_cute.lowering.kernel.rewriter import (
    LoweringRule,
    Rewriter,
    RuleFunction,
)
from basedsl_cute.lowering.kernel.storage import (
    element_of,
    from_storage,
    is_float,
    storage_type,
    to_storage,
    with_element,
)
from basedsl_cute.lowering.required import require

RULES: RuleTable[RuleFunction, LoweringRule] = RuleTable("lower-cute", LoweringRule)

# LLVM's enums AtomicOrdering and AtomicBinOp, as the llvm dialect numbers them.
_ORDERINGS = {"relaxed": 2, "acquire": 4, "release": 5, "acq_rel": 6}
_CAS_FAILURE = {"relaxed": 2, "acquire": 4, "release": 2, "acq_rel": 4}
_INTEGER_ATOMICS = {
    "xchg": 0, "add": 1, "and": 3, "or": 5, "xor": 6, "max": 7, "min": 8, "umax": 9, "umin": 10,
}  # fmt: skip
_FLOAT_ATOMICS = {"xchg": 0, "add": 11, "fadd": 11, "max": 13, "min": 14}
# NVPTX's names of synchronisation scopes (LLVM, "NVPTX memory model").
_SCOPES = {"cta": "block", "cluster": "cluster", "gpu": "device", "sys": ""}


# Loads and stores --------------------------------------------------------------------------------


@RULES.register("cute.load")
def load(b: Rewriter, op: Load) -> RuleResult:
    """Lower to `llvm.load`; an i1 or a narrow float is read as the bytes that it is stored in.

    With `if_used` (a struct's number, of which perhaps only the address was asked for) nothing is
    read if nothing uses it.
    """
    if op.if_used and next(iter(op.value.uses), None) is None:
        return Erase()
    element = element_of(op.value.type)
    stored = storage_type(b, element)
    if packed.is_packed(stored):
        bits = packed.load_packed(b, op, stored, _access(b, op, b.i8))
        return Replace(from_storage(b, bits, op.value.type))
    address = b.element_pointer(op.memref, op.index, stored)
    raw_type = with_element(b, op.value.type, stored)
    raw = b.emit("llvm.load", [raw_type], [address], _access(b, op, stored))
    return Replace(from_storage(b, raw, op.value.type))


@RULES.register("cute.store")
def store(b: Rewriter, op: Store) -> RuleResult:
    """Lower to `llvm.store`."""
    stored = storage_type(b, element_of(op.value.type))
    raw = to_storage(b, op.value, stored)
    if packed.is_packed(stored):
        packed.store_packed(b, op, raw, _access(b, op, b.i8))
        return Erase()
    address = b.element_pointer(op.memref, op.index, stored)
    b.emit("llvm.store", [], [raw, address], _access(b, op, stored))
    return Erase()


@RULES.register("cute.atomic_rmw")
def atomic_rmw(b: Rewriter, op: AtomicRMW) -> RuleResult:
    """Lower to `llvm.atomicrmw`."""
    element = op.value.type
    table = _FLOAT_ATOMICS if is_float(element) else _INTEGER_ATOMICS
    if op.kind not in table or storage_type(b, element) != element:
        raise DSLTypeError(f"there is no atomic {op.kind!r} on {element}", span=op.span)
    address = b.element_pointer(op.memref, op.index, element)
    attributes = {
        "bin_op": b.integer(table[op.kind]),
        "ordering": b.integer(_ORDERINGS[op.order or "relaxed"]),
        "syncscope": b.ir.StringAttr.get(_SCOPES[op.scope or "gpu"]),
        "alignment": b.integer(max(1, element.width // 8)),
    }
    return Replace(b.emit("llvm.atomicrmw", [element], [address, op.value], attributes))


@RULES.register("cute.atomic_cas")
def atomic_cas(b: Rewriter, op: AtomicCAS) -> RuleResult:
    """Lower to `llvm.cmpxchg` and the first field of its result; floats are compared by bits."""
    ir = b.ir
    element = op.value.type
    bits = ir.IntegerType.get_signless(element.width)
    if element.width < 16 or storage_type(b, element) != element:
        raise DSLTypeError(f"there is no atomic compare-and-swap on {element}", span=op.span)
    expected, value = op.expected, op.value
    if is_float(element):
        expected = b.emit("arith.bitcast", [bits], [expected])
        value = b.emit("arith.bitcast", [bits], [value])
    address = b.element_pointer(op.memref, op.index, element)
    order = op.order or "relaxed"
    attributes = {
        "success_ordering": b.integer(_ORDERINGS[order]),
        "failure_ordering": b.integer(_CAS_FAILURE[order]),
        "syncscope": ir.StringAttr.get(_SCOPES[op.scope or "gpu"]),
        "alignment": b.integer(element.width // 8),
    }
    pair = ir.Type.parse(f"!llvm.struct<({bits}, i1)>")
    both = b.emit("llvm.cmpxchg", [pair], [address, expected, value], attributes)
    first = {"position": ir.DenseI64ArrayAttr.get([0])}
    old = b.emit("llvm.extractvalue", [bits], [both], first)
    return Replace(b.bitcast(old, element))


# Tensors from tensors ----------------------------------------------------------------------------


@RULES.register("cute.view")
def view(b: Rewriter, op: View) -> RuleResult:
    """Lower to `llvm.getelementptr`, which canonicalisation removes for a constant zero."""
    if op.dialect.record_of(op.view).space == "tmem":
        return Replace(_tensor_memory_view(b, op))
    stored = storage_type(b, op.dialect.record_of(op.view).element)
    if packed.is_packed(stored):
        return Replace(packed.pointer(b, op.source, op.offset, stored))
    return Replace(b.element_pointer(op.source, op.offset, stored))


@RULES.register("cute.recast")
def recast(b: Rewriter, op: Recast) -> RuleResult:
    """Replace by the source: the address stays."""
    return Replace(op.source)


@RULES.register("cute.iterator")
def iterator(b: Rewriter, op: TensorIterator) -> RuleResult:
    """Replace by the source, which is the address; on the host, cast it."""
    return Replace(b.cast(op.source, op.pointer.type))


@RULES.register("cute.make_memref")
def make_memref(b: Rewriter, op: MakeMemRef) -> RuleResult:
    """Replace by the address, which a lowered tensor is; on the host, cast it."""
    return Replace(b.cast(op.pointer, b.lowered_type(op.memref.type)))


# Memory of a block, of a thread ------------------------------------------------------------------


@RULES.register("cute.alloc_smem")
def alloc_smem(b: Rewriter, op: AllocSmem) -> RuleResult:
    """Lower to a global in address space 3, or to a place in dynamic shared memory if the kernel
    allocates more than it may have statically.
    """
    assert b.function is not None
    record = op.dialect.record_of(op.memref)
    align = max(record.alignment, SMEM_ALIGNMENT)
    if b.function.dynamic_bytes:
        offset = b.function.next_offset()
        if b.target == "sim":
            b.name_dynamic_smem(offset, op.name, op.fields, op.span)
        return Replace(b.byte_pointer(b.dynamic_smem_base(), offset))
    symbol = b.function.next_symbol(op.name or "smem")
    made = b.global_array(symbol, op.bytes, align, "internal")
    if op.fields:
        made.attributes[FIELDS_ATTRIBUTE] = b.ir.StringAttr.get(op.fields)
    return Replace(b.address_of(symbol))


@RULES.register("cute.dynamic_smem")
def dynamic_smem(b: Rewriter, op: DynamicSmem) -> RuleResult:
    """Lower to the external array that holds the launch's bytes (PTX ISA 5.4.1, "extern .shared"),
    behind what `alloc_smem` has moved there.
    """
    assert b.function is not None
    return Replace(b.byte_pointer(b.dynamic_smem_base(), b.function.dynamic_bytes))


@RULES.register("cute.alloc_rmem")
def alloc_rmem(b: Rewriter, op: AllocRmem) -> RuleResult:
    """Lower to a stack slot at the function's entry, which LLVM promotes to registers."""
    ir = b.ir
    record = op.dialect.record_of(op.memref)
    stored = storage_type(b, record.element)
    if packed.is_packed(stored):
        stored = b.i8
    count = -(-op.bytes * 8 // stored.width)
    array = ir.Type.parse(f"!llvm.array<{count} x {stored}>")
    attributes = {"elem_type": ir.TypeAttr.get(array), "alignment": b.integer(record.alignment)}
    with b.at_entry():
        one = b.constant(1, b.i64)
        return Replace(b.emit("llvm.alloca", [b.pointer(0)], [one], attributes))


# Atoms -------------------------------------------------------------------------------------------


@RULES.register("cute.copy", reads_types=True)
def copy(b: Rewriter, op: Copy) -> RuleResult:
    """Lower by atom: "universal" to a load and a store as wide as the copy, under `scf.if` with a
    predicate; "cp_async" to `nvvm.cp.async.shared.global`, whose source size a false predicate
    makes zero; "ldmatrix" and "stmatrix" to the instruction and the accesses of its registers.
    """
    require(COPY_ATOMS[op.atom].requirement, b.target, op.op)
    COPY_LOWERINGS[op.atom.partition("_x")[0]](b, op)
    return Erase()


def _copy_universal(b: Rewriter, op: Copy) -> None:
    ir = b.ir
    source = b.records[0]
    assert source is not None
    bits, predicate = op.bits, op.predicate
    stored = storage_type(b, source.element)
    if packed.is_packed(stored):
        stored = b.i8
    width = stored.width
    kind = stored if width == bits else ir.VectorType.get([bits // width], stored)
    alignment = {"alignment": b.integer(bits // 8)}
    loading = alignment
    if op.cache is not None:
        loading = {**alignment, CACHE_ATTRIBUTE: b.ir.StringAttr.get(op.cache)}

    def move() -> None:
        value = b.emit("llvm.load", [kind], [op.source], loading)
        b.emit("llvm.store", [], [value, op.target], alignment)

    if predicate is None:
        move()
        return
    branch = b.emit("scf.if", [], [predicate], regions=2)
    with b.inside(branch.regions[0].blocks.append()):
        move()
        b.emit("scf.yield")


def _copy_async(b: Rewriter, op: Copy) -> None:
    size = op.bits // 8
    cache = op.cache or ("cg" if size == 16 else "ca")
    operands = [op.target, op.source]
    predicate = op.predicate
    if predicate is not None:
        full, nothing = b.constant(size), b.constant(0)
        operands.append(b.emit("arith.select", [b.i32], [predicate, full, nothing]))
    attributes = {
        "size": b.integer(size, 32),
        "modifier": b.ir.Attribute.parse(f"#nvvm<load_cache_modifier {cache}>"),
    }
    b.emit("nvvm.cp.async.shared.global", [], operands, attributes)


# By the name of a copy atom up to its number of matrices.
COPY_LOWERINGS = {
    "universal": _copy_universal,
    "cp_async": _copy_async,
    "ldmatrix": warp_matrix.load_matrix,
    "ldmatrix_b8": warp_matrix.load_byte_matrix,
    "ldmatrix_b4": warp_matrix.load_matrix,
    "ldmatrix_b6": warp_matrix.load_matrix,
    "ldmatrix_b4t": warp_matrix.load_byte_matrix,
    "ldmatrix_b6t": warp_matrix.load_byte_matrix,
    "stmatrix": warp_matrix.store_matrix,
    "stmatrix_b8": warp_matrix.store_byte_matrix,
}


@RULES.register("cute.gemm", reads_types=True)
def gemm(b: Rewriter, op: Gemm) -> RuleResult:
    """Lower "universal_fma" to `math.fma` on the elements at the four addresses, others to
    `mma.sync`, those of other plugins as they say.
    """
    atom = mma_atom(op.atom)
    if atom is not None and atom.lower is not None:
        require(atom.requirement, b.target, op.op)
        atom.lower(b, op)
        return Erase()
    if op.atom != "universal_fma":
        warp_matrix.multiply(b, op)
        return Erase()
    record = b.records[0]
    assert record is not None
    element = record.element
    a, x, c = (b.emit("llvm.load", [element], [m]) for m in (op.a, op.b, op.c))
    if is_float(element):
        value = b.emit("math.fma", [element], [a, x, c])
    else:
        value = b.emit("arith.addi", [element], [b.emit("arith.muli", [element], [a, x]), c])
    b.emit("llvm.store", [], [value, op.d])
    return Erase()


@RULES.register("cute.wgmma")
def wgmma(b: Rewriter, op: Wgmma) -> RuleResult:
    """Lower to `cute.ptx_wgmma`, on addresses of registers."""
    require(WGMMA, b.target, op.op)
    retype_operands(b, op, PtxWgmma)
    return Erase()


@RULES.register(
    "cute.ptx_wgmma",
    "cute.dsmem_store",
    "cute.launch_response",
    "cute.tensormap_replace",
    "cute.tensormap_release",
    "cute.tmem_load",
    "cute.tmem_store",
)
def instruction(b: Rewriter, op: CuteOp) -> RuleResult:
    """Keep an instruction on addresses: the simulator runs it, `ptx-only` writes it as PTX."""
    return Keep()


# Threads together --------------------------------------------------------------------------------


@RULES.register("cute.barrier")
def barrier(b: Rewriter, op: Barrier) -> RuleResult:
    """Lower to `nvvm.barrier`, with an id and a thread count if given."""
    number, count = op.id, op.count
    operands = []
    if number is not None or count is not None:
        operands.append(b.constant(number or 0))
    if count is not None:
        operands.append(b.constant(count))
    segments = [int(len(operands) > 0), int(len(operands) > 1), 0]
    sizes = b.ir.DenseI32ArrayAttr.get(segments)
    b.emit("nvvm.barrier", [], operands, {"operandSegmentSizes": sizes})
    return Erase()


# The step ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LowerCute:
    """The step `lower-cute` for a target (its name is only in messages)."""

    target: str

    def __call__(self, op: Any, context: PipelineContext) -> None:
        Rewriter(context.bindings, RULES, self.target).run(op)


# What rules share --------------------------------------------------------------------------------


def _tensor_memory_view(b: Rewriter, op: View) -> Any:
    """Compute an address in tensor memory: it counts columns of 32 bits, not bytes, and the place
    within a column in its top bits.
    """
    bits = op.dialect.record_of(op.view).element_bits
    offset = op.offset
    if offset.type != b.i32:
        offset = b.emit("arith.trunci", [b.i32], [offset])
    inside = (TMEM_COLUMN_BITS // bits).bit_length() - 1
    if inside > 0:
        below = b.emit("arith.shrui", [b.i32], [offset, b.constant(inside)])
        above = b.emit("arith.shli", [b.i32], [offset, b.constant(32 - inside)])
        offset = b.emit("arith.ori", [b.i32], [below, above])
    return b.element_pointer(op.source, offset, b.i8)


def retype_operands(b: Rewriter, op: CuteOp, lowered: type[CuteOp]) -> None:
    """Emit the form `lowered` of `op`, whose operands are addresses by now."""
    given = op.op.attributes
    attributes = {f.name: given[f.name] for f in lowered.attribute_fields if f.name in given}
    b.emit(lowered.op_name, [], list(op.op.operands), attributes)


def _access(b: Rewriter, op: Load | Store, stored: Any) -> dict[str, Any]:
    """Return the attributes of the llvm.load or llvm.store that does an access."""
    own_size = max(1, getattr(stored, "width", 64) // 8)
    if len(op.op.attributes) == 0:
        return {"alignment": b.integer(own_size)}
    attributes: dict[str, Any] = {"alignment": b.integer(op.alignment or own_size)}
    if op.volatile:
        attributes["volatile_"] = b.ir.UnitAttr.get()
    if op.order is not None:
        attributes["ordering"] = b.integer(_ORDERINGS[op.order])
        attributes["syncscope"] = b.ir.StringAttr.get(_SCOPES[op.scope or "gpu"])
    if op.cache == "nc" and isinstance(op, Load):
        attributes["invariant"] = b.ir.UnitAttr.get()
    elif op.cache is not None:
        attributes[CACHE_ATTRIBUTE] = b.ir.StringAttr.get(op.cache)
    return attributes
