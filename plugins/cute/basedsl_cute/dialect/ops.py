"""The operations of the `cute` dialect that touch memory or hardware, each with an IR sample.

Layout arithmetic is done at the meta-stage; what of it stays dynamic is `arith`, so every access
here takes a linear offset counted in elements (i32 or i64). How each op becomes LLVM and NVVM is
`lowering.kernel.rules`; what it computes is the simulator's business, on the lowered ops.

There is no print op: IRDL binds a variadic operand to one type, and `gpu.printf` says all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from basedsl import DSLError, InvalidOp, i64_attr, operand, result, str_attr, unit_attr
from basedsl_cute.dialect.atoms import COPY_ATOMS, MMA_ATOMS, mma_atom
from basedsl_cute.dialect.cute_op import CuteOp, Value
from basedsl_cute.dialect.types import MemRef
from basedsl_cute.hardware.targets import WARP_SIZE

if TYPE_CHECKING:
    from basedsl_cute.dialect.definition import CuteDialect

# PTX ISA 9.7.9.1 (cache operators), 9.7.9.2 (eviction priorities of the L1 cache).
CACHE_MODES = ("ca", "cg", "cs", "lu", "cv", "nc", "wb", "wt",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
    "L1::no_allocate")  # fmt: skip
ATOMIC_KINDS = ("add", "fadd", "min", "umin", "max", "umax", "and", "or", "xor", "xchg")
ATOMIC_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
ATOMIC_SCOPES = ("cta", "cluster", "gpu", "sys")


# Types of results that follow from the operands --------------------------------------------------


def _element_type(dialect: CuteDialect, fields: Mapping[str, Any]) -> Any:
    return dialect.record_of(fields["memref"]).element


def _value_type(dialect: CuteDialect, fields: Mapping[str, Any]) -> Any:
    return fields["value"].type


def _pointer_type(dialect: CuteDialect, fields: Mapping[str, Any]) -> Any:
    return dialect.pointer_type(dialect.record_of(fields["source"]).address_space)


# Loads and stores --------------------------------------------------------------------------------


class Load(CuteOp, name="load"):
    """Read the element at `index`, or consecutive elements as a vector.

        %x = "cute.load"(%m, %i) : (!cute.memref<f32, "gmem", "(?):(1)">, i32) -> f32
        %v = "cute.load"(%a, %i) {alignment = 16 : i64}
            : (!cute.memref<f32, "gmem align<16>", "(?):(1)">, i32) -> vector<4xf32>

    `alignment` (bytes, default one element) is what the front end has proven about the address;
    an access is never wider than that. `cache` is a PTX cache operator (PTX ISA 9.7.9.1), an
    eviction priority of L1, or "nc" for data that no one writes while the kernel runs. `volatile`
    keeps the access as it is. `order` and `scope` make it a strong access (PTX ISA 8, "Memory
    Consistency Model"). With `if_used` there is no access if nothing uses the value.
    """

    memref: Value = operand()
    index: Value = operand()
    value: Value = result(alias="type", factory=_element_type)
    alignment: int | None = i64_attr(default=None)
    cache: str | None = str_attr(default=None)
    if_used: bool = unit_attr(default=False)
    order: str | None = str_attr(default=None)
    scope: str | None = str_attr(default=None)
    volatile: bool = unit_attr(default=False)

    def verify(self) -> str | None:
        return _access(self)


class Store(CuteOp, name="store"):
    """Write one element, or a vector of consecutive elements, at `index`.

        "cute.store"(%x, %m, %i) : (f32, !cute.memref<f32, "gmem", "(?):(1)">, i32) -> ()

    Attributes as for `cute.load`.
    """

    value: Value = operand()
    memref: Value = operand()
    index: Value = operand()
    alignment: int | None = i64_attr(default=None)
    cache: str | None = str_attr(default=None)
    order: str | None = str_attr(default=None)
    scope: str | None = str_attr(default=None)
    volatile: bool = unit_attr(default=False)

    def verify(self) -> str | None:
        return _access(self)


class AtomicRMW(CuteOp, name="atomic_rmw"):
    """Combine `value` atomically with the element at `index`; the result is the element before.

        %old = "cute.atomic_rmw"(%x, %m, %i) {kind = "add"}
            : (i32, !cute.memref<i32, "gmem", "(?):(1)">, i32) -> i32

    `kind`: add, fadd, min, max (signed or float by element type), umin, umax, and, or, xor, xchg.
    `order` (default relaxed) and `scope` (default gpu) are those of PTX ISA 9.7.13, "atom".
    """

    value: Value = operand()
    memref: Value = operand()
    index: Value = operand()
    old: Value = result(alias="type", factory=_value_type)
    kind: str = str_attr()
    order: str | None = str_attr(default=None)
    scope: str | None = str_attr(default=None)

    def verify(self) -> str | None:
        if self.kind not in ATOMIC_KINDS:
            return f"kind {self.kind!r} is none of {', '.join(ATOMIC_KINDS)}"
        return _atomic(self, self.value, self.old)


class AtomicCAS(CuteOp, name="atomic_cas"):
    """Write `value` at `index` atomically if `expected` is there; the result is the element before.

    %old = "cute.atomic_cas"(%expected, %new, %m, %i)
        : (i32, i32, !cute.memref<i32, "gmem", "(?):(1)">, i32) -> i32
    """

    expected: Value = operand()
    value: Value = operand()
    memref: Value = operand()
    index: Value = operand()
    old: Value = result(alias="type", factory=_value_type)
    order: str | None = str_attr(default=None)
    scope: str | None = str_attr(default=None)

    def verify(self) -> str | None:
        return _atomic(self, self.expected, self.value, self.old)


# Tensors from tensors ----------------------------------------------------------------------------


class View(CuteOp, name="view"):
    """Move the beginning of a tensor by `offset` elements and give it another layout.

        %r = "cute.view"(%m, %o) : (!cute.memref<f32, "gmem", "(?,64):(64,1)">, i32)
            -> !cute.memref<f32, "gmem", "(64):(1)">

    Element type and memory stay; the result's alignment is a claim of whoever built the view.
    """

    source: Value = operand()
    offset: Value = operand()
    view: Value = result(alias="type")

    def verify(self) -> str | None:
        source, view = _memref(self, self.source), _memref(self, self.view)
        if source.element != view.element:
            return f"the view's elements are {view.element}, the source's are {source.element}"
        if source.space != view.space:
            return f"the view is in {view.space}, the source in {source.space}"
        return _index(self, self.offset, "offset")


class Recast(CuteOp, name="recast"):
    """Reinterpret the memory of a tensor as elements of another type.

    %h = "cute.recast"(%m) : (!cute.memref<f32, "smem", "(64):(1)">)
        -> !cute.memref<f16, "smem", "(128):(1)">
    """

    source: Value = operand()
    view: Value = result(alias="type")

    def verify(self) -> str | None:
        source, view = _memref(self, self.source), _memref(self, self.view)
        if source.space != view.space:
            return f"the view is in {view.space}, the source in {source.space}"
        return None


class TensorIterator(CuteOp, name="iterator"):
    """Get the address of a tensor's first element, for operations of other dialects.

    %p = "cute.iterator"(%m) : (!cute.memref<i64, "smem", "(2):(1)">) -> !llvm.ptr<3>
    """

    source: Value = operand()
    pointer: Value = result(alias="type", factory=_pointer_type)

    def verify(self) -> str | None:
        return _pointer(self, self.source, self.pointer)


class MakeMemRef(CuteOp, name="make_memref"):
    """Make a tensor of an address that another dialect's operation gave.

    %m = "cute.make_memref"(%p) : (!llvm.ptr<1>) -> !cute.memref<f32, "gmem", "(?):(1)">
    """

    pointer: Value = operand()
    memref: Value = result(alias="type")

    def verify(self) -> str | None:
        return _pointer(self, self.memref, self.pointer)


# Memory of a block, of a thread ------------------------------------------------------------------


class AllocSmem(CuteOp, name="alloc_smem"):
    """Allocate `bytes` of the block's shared memory: the same memory each time this is executed.
    `name` and `fields` ("a:0;b:64") are for messages.

    %s = "cute.alloc_smem"() {bytes = 4096 : i64}
        : () -> !cute.memref<f32, "smem align<16>", "(32,32):(32,1)">
    """

    memref: Value = result(alias="type")
    bytes: int = i64_attr()
    name: str | None = str_attr(default=None)
    fields: str | None = str_attr(default=None)

    def verify(self) -> str | None:
        return _allocation(self, "smem")


class DynamicSmem(CuteOp, name="dynamic_smem"):
    """Get the beginning of the shared memory whose size the launch gives (`smem=`).

    %d = "cute.dynamic_smem"() : () -> !cute.memref<i8, "smem align<1024>", "(?):(1)">
    """

    memref: Value = result(alias="type")

    def verify(self) -> str | None:
        return _in_space(self, self.memref, "smem")


class AllocRmem(CuteOp, name="alloc_rmem"):
    """Allocate `bytes` of the thread's registers, undefined until written.

        %r = "cute.alloc_rmem"() {bytes = 16 : i64}
            : () -> !cute.memref<f32, "rmem align<16>", "(4):(1)">

    LLVM keeps them in registers as long as every index into them is static.
    """

    memref: Value = result(alias="type")
    bytes: int = i64_attr()

    def verify(self) -> str | None:
        return _allocation(self, "rmem")


# Atoms -------------------------------------------------------------------------------------------


class Copy(CuteOp, name="copy"):
    """Copy `bits` of consecutive memory from tensor to tensor by a copy atom, in one thread.

        "cute.copy"(%s, %d) {atom = "universal", bits = 128 : i64}
            : (!cute.memref<f32, "gmem align<16>", "(4):(1)">,
               !cute.memref<f32, "rmem align<16>", "(4):(1)">) -> ()
        "cute.copy"(%s, %t, %p) {atom = "cp_async", bits = 128 : i64, cache = "cg"}
            : (!cute.memref<f32, "gmem align<16>", "(4):(1)">,
               !cute.memref<f32, "smem align<16>", "(4):(1)">, i1) -> ()

    `atom` names a row of `dialect.atoms.COPY_ATOMS`. With a predicate that is false, "universal"
    does nothing and "cp_async" writes zeros. Both tensors must be aligned to the bits copied.
    """

    source: Value = operand()
    target: Value = operand()
    predicate: Value | None = operand(default=None)
    atom: str = str_attr()
    bits: int = i64_attr()
    cache: str | None = str_attr(default=None)

    def verify(self) -> str | None:
        atom = COPY_ATOMS.get(self.atom)
        if atom is None:
            return f"no copy atom {self.atom!r}; there are {', '.join(COPY_ATOMS)}"
        source, target = _memref(self, self.source), _memref(self, self.target)
        if source.element != target.element:
            return f"copies {source.element} into {target.element}; a copy converts nothing"
        if self.predicate is not None and str(self.predicate.type) != "i1":
            return f"the predicate is {self.predicate.type}, not i1"
        bits = self.bits
        if bits % source.element_bits:
            return f"{bits} bits are no whole number of {source.element} elements"
        for what, memref in (("source", source), ("target", target)):
            if memref.space != "rmem" and memref.alignment * 8 < bits:
                return (
                    f"{bits} bits at once need {bits // 8}-byte alignment; "
                    f"the {what} is known to be aligned to {memref.alignment}"
                )
        return atom.refuses(source.space, target.space, bits, self.cache)


class Gemm(CuteOp, name="gemm"):
    """Multiply and accumulate matrices by an MMA atom: d = a * b + c over the threads of the atom.

        "cute.gemm"(%d, %a, %b, %c) {atom = "universal_fma"}
            : (!cute.memref<f32, "rmem", "(1):(0)">, !cute.memref<f32, "rmem", "(1):(0)">,
               !cute.memref<f32, "rmem", "(1):(0)">, !cute.memref<f32, "rmem", "(1):(0)">) -> ()

    `atom` names a row of `dialect.atoms.MMA_ATOMS`; the tensors hold one thread's fragments.
    """

    d: Value = operand()
    a: Value = operand()
    b: Value = operand()
    c: Value = operand()
    atom: str = str_attr()

    def verify(self) -> str | None:
        atom = mma_atom(self.atom)
        if atom is None:
            return f"no MMA atom {self.atom!r}; there are {', '.join(MMA_ATOMS)}"
        d, a, b, c = (str(_memref(self, v).element) for v in (self.d, self.a, self.b, self.c))
        return atom.refuses(d, a, b, c)


# Threads together --------------------------------------------------------------------------------


class Barrier(CuteOp, name="barrier"):
    """Wait until all threads of the block, or `count` of them at barrier `id`, have arrived.

        "cute.barrier"() : () -> ()
        "cute.barrier"() {id = 1 : i64, count = 128 : i64} : () -> ()

    Ids are 0 to 15, counts multiples of the warp size (PTX ISA 9.7.13.1, "barrier").
    """

    id: int | None = i64_attr(default=None)
    count: int | None = i64_attr(default=None)

    def verify(self) -> str | None:
        number, count = self.id or 0, self.count
        if not 0 <= number <= 15:
            return f"barrier {number}: a block has barriers 0 to 15"
        if count is not None and (count <= 0 or count % WARP_SIZE):
            return f"{count} threads: a barrier counts whole warps, multiples of {WARP_SIZE}"
        return None


# What verifiers share ----------------------------------------------------------------------------


def _memref(op: CuteOp, value: Value) -> MemRef:
    try:
        record: MemRef | None = op.dialect.record(value.type)
    except DSLError as error:
        raise InvalidOp(error.message) from None
    if record is None:
        raise InvalidOp(f"{value.type} is no tensor (!cute.memref)")
    return record


def _index(op: CuteOp, value: Value, what: str = "index") -> str | None:
    kind = value.type  # whose text would take as long as the rest of a verification
    fits = isinstance(kind, op.dialect.ir.IntegerType) and kind.is_signless
    return None if fits and kind.width in (32, 64) else f"the {what} is {kind}, not i32 or i64"


def _access(op: Load | Store) -> str | None:
    memref, kind = _memref(op, op.memref), op.value.type
    wrong = _index(op, op.index)
    if wrong:
        return wrong
    if kind != memref.element:
        scalar = getattr(kind, "element_type", None)
        if scalar is None or scalar != memref.element:
            return f"the value is {kind}, the tensor's elements are {memref.element}"
        if len(kind.shape) != 1:
            return f"a vector access has one dimension, not {kind}"
    alignment, cache = op.alignment, op.cache
    if alignment is not None and (alignment < 1 or alignment & (alignment - 1)):
        return f"alignment {alignment} is no power of two"
    if cache is not None and cache not in CACHE_MODES:
        return f"cache {cache!r} is none of {', '.join(CACHE_MODES)}"
    return _strength(op)


def _strength(op: Load | Store | AtomicRMW | AtomicCAS) -> str | None:
    order, scope = op.order, op.scope
    if order is not None and order not in ATOMIC_ORDERS:
        return f"order {order!r} is none of {', '.join(ATOMIC_ORDERS)}"
    if scope is not None and scope not in ATOMIC_SCOPES:
        return f"scope {scope!r} is none of {', '.join(ATOMIC_SCOPES)}"
    return None


def _atomic(op: AtomicRMW | AtomicCAS, *values: Value) -> str | None:
    memref = _memref(op, op.memref)
    for value in values:
        if value.type != memref.element:
            return f"the value is {value.type}, the tensor's elements are {memref.element}"
    if memref.space == "rmem":
        return "registers belong to one thread; an atomic needs memory that threads share"
    return _strength(op) or _index(op, op.index)


def _in_space(op: CuteOp, value: Value, space: str) -> str | None:
    own = _memref(op, value).space
    return None if own == space else f"the tensor is in {own}, not in {space}"


def _allocation(op: AllocSmem | AllocRmem, space: str) -> str | None:
    if op.bytes <= 0:
        return f"cannot allocate {op.bytes} bytes"
    return _in_space(op, op.memref, space)


def _pointer(op: CuteOp, memref: Value, pointer: Value) -> str | None:
    record = _memref(op, memref)
    wanted = pointer_text(record.address_space)
    if str(pointer.type) != wanted:
        return f"an address in {record.space} is {wanted}, not {pointer.type}"
    return None


def pointer_text(address_space: int) -> str:
    """Return the text of a pointer type: `!llvm.ptr` or `!llvm.ptr<3>`."""
    return f"!llvm.ptr<{address_space}>" if address_space else "!llvm.ptr"
