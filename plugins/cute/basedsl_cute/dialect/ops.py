"""The ops of the `cute` dialect: what touches memory or hardware, each with an IR sample.

Layout arithmetic is done at the meta-stage; what of it stays dynamic is `arith`, so every access
here takes a linear offset counted in elements (i32 or i64). How each op becomes LLVM and NVVM is
`lowering.rules`; what it computes is the simulator's business, on the lowered ops.

There is no print op: IRDL binds a variadic operand to one type, and `gpu.printf` says all of it.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLError
from basedsl_cute.dialect.atoms import COPY_ATOMS, MMA_ATOMS
from basedsl_cute.dialect.declare import Operands, op
from basedsl_cute.dialect.types import MemRef
from basedsl_cute.hardware.targets import WARP_SIZE

# PTX ISA 9.7.9.1 (cache operators), 9.7.9.2 (eviction priorities of the L1 cache).
CACHE_MODES = ("ca", "cg", "cs", "lu", "cv", "nc", "wb", "wt",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
    "L1::no_allocate")  # fmt: skip
ATOMIC_KINDS = ("add", "fadd", "min", "umin", "max", "umax", "and", "or", "xor", "xchg")
ATOMIC_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
ATOMIC_SCOPES = ("cta", "cluster", "gpu", "sys")


# Loads and stores --------------------------------------------------------------------------------


@op("load")
class Load:
    """The element at `index`, or `n` consecutive elements as a vector.

        %x = "cute.load"(%m, %i) : (!cute.memref<f32, "gmem", "(?):(1)">, i32) -> f32
        %v = "cute.load"(%a, %i) {alignment = 16 : i64}
            : (!cute.memref<f32, "gmem align<16>", "(?):(1)">, i32) -> vector<4xf32>

    `alignment` (bytes, default one element) is what the front end has proven about the address;
    an access is never wider than that. `cache` is a PTX cache operator (PTX ISA 9.7.9.1), an
    eviction priority of L1, or "nc" for data that no one writes while the kernel runs. `volatile`
    keeps the access as it is. `order` and `scope` make it a strong access (PTX ISA 8, "Memory
    Consistency Model"). With `if_used` there is no access if nothing uses the value.
    """

    operands = ("memref", "index")
    results = ("value",)
    optional = ("alignment", "cache", "if_used", "order", "scope", "volatile")

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _access(op, op.value.type)


@op("store")
class Store:
    """Write one element, or a vector of consecutive elements, at `index`.

        "cute.store"(%x, %m, %i) : (f32, !cute.memref<f32, "gmem", "(?):(1)">, i32) -> ()

    Attributes as for `cute.load`.
    """

    operands = ("value", "memref", "index")
    optional = ("alignment", "cache", "order", "scope", "volatile")

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _access(op, op.value.type)


@op("atomic_rmw")
class AtomicRMW:
    """Combine `value` into the element at `index` at once; the result is what was there before.

        %old = "cute.atomic_rmw"(%x, %m, %i) {kind = "add"}
            : (i32, !cute.memref<i32, "gmem", "(?):(1)">, i32) -> i32

    `kind`: add, fadd, min, max (signed or float by element type), umin, umax, and, or, xor, xchg.
    `order` (default relaxed) and `scope` (default gpu) are those of PTX ISA 9.7.13, "atom".
    """

    operands = ("value", "memref", "index")
    results = ("old",)
    attributes = ("kind",)
    optional = ("order", "scope")

    @staticmethod
    def verify(op: Operands) -> str | None:
        if op.text("kind") not in ATOMIC_KINDS:
            return f"kind {op.text('kind')!r} is none of {', '.join(ATOMIC_KINDS)}"
        return _atomic(op, op.value, op.old)


@op("atomic_cas")
class AtomicCAS:
    """Write `value` at `index` if `expected` is there, at once; the result is what was there.

    %old = "cute.atomic_cas"(%expected, %new, %m, %i)
        : (i32, i32, !cute.memref<i32, "gmem", "(?):(1)">, i32) -> i32
    """

    operands = ("expected", "value", "memref", "index")
    results = ("old",)
    optional = ("order", "scope")

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _atomic(op, op.expected, op.value, op.old)


# Tensors from tensors ----------------------------------------------------------------------------


@op("view")
class View:
    """The tensor `offset` elements further on, with another layout.

        %r = "cute.view"(%m, %o) : (!cute.memref<f32, "gmem", "(?,64):(64,1)">, i32)
            -> !cute.memref<f32, "gmem", "(64):(1)">

    Element type and memory stay; the result's alignment is a claim of whoever built the view.
    """

    operands = ("source", "offset")
    results = ("view",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        source, view = _memref(op, op.source), _memref(op, op.view)
        if isinstance(source, str) or isinstance(view, str):
            return source if isinstance(source, str) else view  # type: ignore[return-value]
        if source.element != view.element:
            return f"the view's elements are {view.element}, the source's are {source.element}"
        if source.space != view.space:
            return f"the view is in {view.space}, the source in {source.space}"
        return _index(op.offset, "offset")


@op("recast")
class Recast:
    """The same memory seen as elements of another type.

    %h = "cute.recast"(%m) : (!cute.memref<f32, "smem", "(64):(1)">)
        -> !cute.memref<f16, "smem", "(128):(1)">
    """

    operands = ("source",)
    results = ("view",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        source, view = _memref(op, op.source), _memref(op, op.view)
        if isinstance(source, str) or isinstance(view, str):
            return source if isinstance(source, str) else view  # type: ignore[return-value]
        if source.space != view.space:
            return f"the view is in {view.space}, the source in {source.space}"
        return None


@op("iterator")
class Iterator:
    """The address of a tensor's first element, for ops of other dialects.

    %p = "cute.iterator"(%m) : (!cute.memref<i64, "smem", "(2):(1)">) -> !llvm.ptr<3>
    """

    operands = ("source",)
    results = ("pointer",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _pointer(op, op.source, op.pointer)


@op("make_memref")
class MakeMemRef:
    """A tensor over an address that came from elsewhere.

    %m = "cute.make_memref"(%p) : (!llvm.ptr<1>) -> !cute.memref<f32, "gmem", "(?):(1)">
    """

    operands = ("pointer",)
    results = ("memref",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _pointer(op, op.memref, op.pointer)


# Memory of a block, of a thread ------------------------------------------------------------------


@op("alloc_smem")
class AllocSmem:
    """Shared memory of the block, `bytes` large: the same memory wherever this op is reached.
    `name` and `fields` ("a:0;b:64") are for messages.

    %s = "cute.alloc_smem"() {bytes = 4096 : i64}
        : () -> !cute.memref<f32, "smem align<16>", "(32,32):(32,1)">
    """

    results = ("memref",)
    attributes = ("bytes",)
    optional = ("name", "fields")

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _allocation(op, "smem")


@op("dynamic_smem")
class DynamicSmem:
    """The shared memory whose size the launch gives (`smem=`); all such ops give its beginning.

    %d = "cute.dynamic_smem"() : () -> !cute.memref<i8, "smem align<1024>", "(?):(1)">
    """

    results = ("memref",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _in_space(op, op.memref, "smem")


@op("alloc_rmem")
class AllocRmem:
    """Registers of the thread, `bytes` of them, undefined until written.

        %r = "cute.alloc_rmem"() {bytes = 16 : i64}
            : () -> !cute.memref<f32, "rmem align<16>", "(4):(1)">

    LLVM keeps them in registers as long as every index into them is static.
    """

    results = ("memref",)
    attributes = ("bytes",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        return _allocation(op, "rmem")


# Atoms -------------------------------------------------------------------------------------------


@op("copy")
class Copy:
    """One copy by an atom: `bits` of consecutive memory, from tensor to tensor, by one thread.

        "cute.copy"(%s, %d) {atom = "universal", bits = 128 : i64}
            : (!cute.memref<f32, "gmem align<16>", "(4):(1)">,
               !cute.memref<f32, "rmem align<16>", "(4):(1)">) -> ()
        "cute.copy"(%s, %t, %p) {atom = "cp_async", bits = 128 : i64, cache = "cg"}
            : (!cute.memref<f32, "gmem align<16>", "(4):(1)">,
               !cute.memref<f32, "smem align<16>", "(4):(1)">, i1) -> ()

    `atom` names a row of `dialect.atoms.COPY_ATOMS`. With a predicate that is false, "universal"
    does nothing and "cp_async" writes zeros. Both tensors must be aligned to the bits copied.
    """

    operands = ("source", "target", "?predicate")
    attributes = ("atom", "bits")
    optional = ("cache",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        atom = COPY_ATOMS.get(op.text("atom") or "")
        if atom is None:
            return f"no copy atom {op.text('atom')!r}; there are {', '.join(COPY_ATOMS)}"
        source, target = _memref(op, op.source), _memref(op, op.target)
        if isinstance(source, str) or isinstance(target, str):
            return source if isinstance(source, str) else target  # type: ignore[return-value]
        if source.element != target.element:
            return f"copies {source.element} into {target.element}; a copy converts nothing"
        if op.predicate is not None and str(op.predicate.type) != "i1":
            return f"the predicate is {op.predicate.type}, not i1"
        bits = op.integer("bits") or 0
        if bits % source.element_bits:
            return f"{bits} bits are no whole number of {source.element} elements"
        for what, memref in (("source", source), ("target", target)):
            if memref.space != "rmem" and memref.alignment * 8 < bits:
                return (
                    f"{bits} bits at once need {bits // 8}-byte alignment; "
                    f"the {what} is known to be aligned to {memref.alignment}"
                )
        return atom.refuses(source.space, target.space, bits, op.text("cache"))


@op("gemm")
class Gemm:
    """One matrix multiply-accumulate by an atom: d = a * b + c over the threads of the atom.

        "cute.gemm"(%d, %a, %b, %c) {atom = "universal_fma"}
            : (!cute.memref<f32, "rmem", "(1):(0)">, !cute.memref<f32, "rmem", "(1):(0)">,
               !cute.memref<f32, "rmem", "(1):(0)">, !cute.memref<f32, "rmem", "(1):(0)">) -> ()

    `atom` names a row of `dialect.atoms.MMA_ATOMS`; the tensors hold one thread's fragments.
    """

    operands = ("d", "a", "b", "c")
    attributes = ("atom",)

    @staticmethod
    def verify(op: Operands) -> str | None:
        atom = MMA_ATOMS.get(op.text("atom") or "")
        if atom is None:
            return f"no MMA atom {op.text('atom')!r}; there are {', '.join(MMA_ATOMS)}"
        records = [_memref(op, value) for value in (op.d, op.a, op.b, op.c)]
        for record in records:
            if isinstance(record, str):
                return record
        elements = [str(record.element) for record in records]  # type: ignore[union-attr]
        return atom.refuses(*elements)


# Threads together --------------------------------------------------------------------------------


@op("barrier")
class Barrier:
    """Wait until all threads of the block, or `count` of them at barrier `id`, are here.

        "cute.barrier"() : () -> ()
        "cute.barrier"() {id = 1 : i64, count = 128 : i64} : () -> ()

    Ids are 0 to 15, counts multiples of the warp size (PTX ISA 9.7.13.1, "barrier").
    """

    optional = ("id", "count")

    @staticmethod
    def verify(op: Operands) -> str | None:
        number, count = op.integer("id", 0), op.integer("count")
        if not 0 <= (number or 0) <= 15:
            return f"barrier {number}: a block has barriers 0 to 15"
        if count is not None and (count <= 0 or count % WARP_SIZE):
            return f"{count} threads: a barrier counts whole warps, multiples of {WARP_SIZE}"
        return None


# What verifiers share ----------------------------------------------------------------------------


def _memref(op: Operands, value: Any) -> MemRef | str:
    try:
        record = op.dialect.record(value.type)
    except DSLError as error:
        return error.message
    return record if record is not None else f"{value.type} is no tensor (!cute.memref)"


def _index(value: Any, what: str = "index") -> str | None:
    kind = str(value.type)
    return None if kind in ("i32", "i64") else f"the {what} is {kind}, not i32 or i64"


def _access(op: Operands, kind: Any) -> str | None:
    memref = _memref(op, op.memref)
    if isinstance(memref, str):
        return memref
    wrong = _index(op.index)
    if wrong:
        return wrong
    if kind != memref.element:
        scalar = getattr(kind, "element_type", None)
        if scalar is None or scalar != memref.element:
            return f"the value is {kind}, the tensor's elements are {memref.element}"
        if len(kind.shape) != 1:
            return f"a vector access has one dimension, not {kind}"
    alignment = op.integer("alignment")
    if alignment is not None and (alignment < 1 or alignment & (alignment - 1)):
        return f"alignment {alignment} is no power of two"
    cache = op.text("cache")
    if cache is not None and cache not in CACHE_MODES:
        return f"cache {cache!r} is none of {', '.join(CACHE_MODES)}"
    return _strength(op)


def _strength(op: Operands) -> str | None:
    if op.text("order", "relaxed") not in ATOMIC_ORDERS:
        return f"order {op.text('order')!r} is none of {', '.join(ATOMIC_ORDERS)}"
    if op.text("scope", "gpu") not in ATOMIC_SCOPES:
        return f"scope {op.text('scope')!r} is none of {', '.join(ATOMIC_SCOPES)}"
    return None


def _atomic(op: Operands, *values: Any) -> str | None:
    memref = _memref(op, op.memref)
    if isinstance(memref, str):
        return memref
    for value in values:
        if value.type != memref.element:
            return f"the value is {value.type}, the tensor's elements are {memref.element}"
    if memref.space == "rmem":
        return "registers belong to one thread; an atomic needs memory that threads share"
    return _strength(op) or _index(op.index)


def _in_space(op: Operands, value: Any, space: str) -> str | None:
    memref = _memref(op, value)
    if isinstance(memref, str):
        return memref
    return None if memref.space == space else f"the tensor is in {memref.space}, not in {space}"


def _allocation(op: Operands, space: str) -> str | None:
    size = op.integer("bytes") or 0
    return f"cannot allocate {size} bytes" if size <= 0 else _in_space(op, op.memref, space)


def _pointer(op: Operands, memref: Any, pointer: Any) -> str | None:
    record = _memref(op, memref)
    if isinstance(record, str):
        return record
    wanted = pointer_text(record.address_space)
    if str(pointer.type) != wanted:
        return f"an address in {record.space} is {wanted}, not {pointer.type}"
    return None


def pointer_text(address_space: int) -> str:
    """`!llvm.ptr` or `!llvm.ptr<3>`."""
    return f"!llvm.ptr<{address_space}>" if address_space else "!llvm.ptr"
