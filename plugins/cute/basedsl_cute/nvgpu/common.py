"""Operations that every architecture has: ordinary loads, stores and multiply-adds."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Numeric, Uint8, Uint16, Uint32, Uint64, current_trace, mlir_type
from basedsl_cute import algebra, arch
from basedsl_cute.algebra import CopyAtomLayout, MmaAtomLayout
from basedsl_cute.atoms.copy import CopyAtom, CopyOp
from basedsl_cute.atoms.copy_instruction import contiguous_piece, emit_copy, predicated, unproven
from basedsl_cute.atoms.memory_semantics import (
    WEAK,
    CacheEvictionPriority,
    MemoryOrder,
    MemoryScope,
)
from basedsl_cute.atoms.mma import MmaOp
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import Gemm
from basedsl_cute.tensors.pointer import recast_ptr, storage_bits
from basedsl_cute.tensors.vector_ops import bits_as, extract, from_elements, splat, to_elements
from basedsl_cute.tensors.vectorized_access import load_vector, store_vector

__all__ = [
    "CacheEvictionPriority",
    "CopyG2ROp",
    "CopyR2GOp",
    "CopyUniversalOp",
    "LoadCacheMode",
    "MemoryOrder",
    "MemoryScope",
    "MmaUniversalOp",
]


class LoadCacheMode(enum.Enum):
    """The cache operator of loads (PTX ISA 9.7.9.1, "Cache Operators"); values are PTX's names.

    ALWAYS caches at all levels, GLOBAL in L2 only, STREAMING is likely touched once, LAST_USE is
    not used again, NONE (PTX cv) is fetched anew, READ_ONLY is not written while the kernel runs.
    """

    ALWAYS = "ca"
    GLOBAL = "cg"
    STREAMING = "cs"
    LAST_USE = "lu"
    NONE = "cv"
    READ_ONLY = "nc"


def thread_layout(width: int, bits: int | None) -> CopyAtomLayout:
    """Return the layouts of an instruction of one thread that moves `bits`, by default one
    element.
    """
    return algebra.thread_copy(bits or width).in_elements(width)


@dataclass(frozen=True)
class CopyUniversalOp(CopyOp):
    """The copy by ordinary loads and stores, between any two memories.

    `make_copy_atom` takes `num_bits_per_copy`, 8 to 256; without it the copy is as wide as
    alignment and contiguity prove.
    """

    may_choose_width = True
    is_plain = True

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of one thread; DSLTypeError for more than 256 bits."""
        if bits is not None and bits > 256:
            raise DSLTypeError(f"an ordinary copy moves up to 256 bits at once, not {bits}")
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one load and one store."""
        _no_fields(self, fields)
        _move(atom, src, dst, pred)


@dataclass(frozen=True)
class CopyG2ROp(CopyOp):
    """The copy by loads from global memory into registers with the cache operator `cache_mode`."""

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    is_plain = True

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of one thread."""
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one load; DSLTypeError for other memories."""
        _no_fields(self, fields)
        if src.memspace != "gmem" or dst.memspace != "rmem":
            raise DSLTypeError(
                f"CopyG2ROp copies gmem to rmem, not {src.memspace} to {dst.memspace}"
            )
        always = self.cache_mode is LoadCacheMode.ALWAYS
        if not always and atom.access != WEAK:
            raise DSLTypeError("a load has a cache mode, or an order or eviction priority")
        _move(atom, src, dst, pred, self.cache_mode.value)


@dataclass(frozen=True)
class CopyR2GOp(CopyOp):
    """The copy by stores from registers into global memory."""

    is_plain = True

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of one thread."""
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one store; DSLTypeError for other memories."""
        _no_fields(self, fields)
        if src.memspace != "rmem" or dst.memspace != "gmem":
            raise DSLTypeError(
                f"CopyR2GOp copies rmem to gmem, not {src.memspace} to {dst.memspace}"
            )
        _move(atom, src, dst, pred)


def _move(atom: CopyAtom, src: Any, dst: Any, pred: Any, cache: str | None = None) -> None:
    """Emit one copy instruction by a load and a store."""
    bits = atom.num_bits or atom.width
    name = f"{type(atom.op).__name__} of {bits} bits"
    access = atom.access
    if access == WEAK:
        emit_copy(src, dst, bits, pred, cache=cache, name=name)
        return
    for tensor in (src, dst):
        if tensor.memspace != "rmem" and contiguous_piece(tensor, bits) is None:
            raise unproven(name, tensor, bits)
    with predicated(pred):
        if access.order is None:
            loading, storing = (access.priority if x.memspace == "gmem" else None
                                for x in (src, dst))  # fmt: skip
            store_vector(dst, load_vector(src, loading), storing)
        elif dst.memspace == "rmem" and src.memspace != "rmem":
            found = arch.load(src.iterator, _WORDS[bits], sem=access.order, scope=access.scope)
            element, n = mlir_type(atom.dtype, current_trace("a copy").ir), bits // atom.width
            store_vector(dst, bits_as(splat(found.ir_value(), 1), element, n))
        elif src.memspace == "rmem" and dst.memspace != "rmem":
            kind = _WORDS[bits]
            whole = bits_as(load_vector(src), mlir_type(kind, current_trace("a copy").ir), 1)
            at, value = recast_ptr(dst.iterator, dtype=kind), kind.from_value(extract(whole, 0))
            arch.store(at, value, sem=access.order, scope=access.scope)
        else:
            raise DSLTypeError(
                f"{name}: an ordered copy is between registers and memory, not {src.memspace} to "
                f"{dst.memspace}"
            )


_WORDS = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}


def _no_fields(op: CopyOp, fields: dict[str, Any]) -> None:
    """DSLTypeError for a keyword argument of `cute.copy` that the operation does not take."""
    for name, value in fields.items():
        if value is not None:
            raise DSLTypeError(f"{type(op).__name__} takes no {name}=")


@dataclass(frozen=True)
class MmaUniversalOp(MmaOp):
    """The multiply-add of one thread, 1x1x1, in the type `abacc_dtype` of its operands.

    Floats are rounded once (fma); integers wrap around.
    """

    abacc_dtype: type[Numeric]
    by_columns = True

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        kind = self.abacc_dtype
        return kind, kind, kind, kind

    def layout(self) -> MmaAtomLayout:
        """Return the layouts of one thread."""
        return algebra.thread_mma()

    def issue(self, d: Any, a: Any, b: Any, c: Any) -> None:
        """Emit one multiply-add, d = a * b + c, of tensors of one element."""
        trace = current_trace("gemm")
        bits = storage_bits(self.abacc_dtype)
        d, a, b, c = (contiguous_piece(x, bits) for x in (d, a, b, c))
        Gemm(define(trace.bindings), d=d, a=a, b=b, c=c, atom="universal_fma", loc=trace.loc())

    def issue_column(self, d: Any, a: Any, b: Any, c: Any, upwards: bool) -> None:
        """Emit the multiply-adds of a column of D, the last first if `upwards`."""
        trace = current_trace("gemm")
        rows, sums = load_vector(a), load_vector(c)
        (element,) = to_elements(load_vector(b))

        def emit(name: str, *operands: Any) -> Any:
            create = trace.ir.Operation.create
            kind = operands[0].type
            return create(name, results=[kind], operands=operands, loc=trace.loc()).result

        def multiply_add(x: Any, y: Any, z: Any) -> Any:
            if self.abacc_dtype.is_float:
                return emit("math.fma", x, y, z)
            return emit("arith.addi", emit("arith.muli", x, y), z)

        order = range(rows.type.shape[0])
        order = order[::-1] if upwards else order
        xs, zs, results = to_elements(rows), to_elements(sums), {}
        for i in order:
            results[i] = multiply_add(xs[i], element, zs[i])
        store_vector(d, from_elements([results[i] for i in range(len(xs))]))
