"""Operations that every architecture has: ordinary loads, stores and multiply-adds."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.metastage import require
from basedsl_cute import algebra
from basedsl_cute.algebra import CopyAtomLayout, MmaAtomLayout
from basedsl_cute.atoms.copy import CopyAtom, CopyOp
from basedsl_cute.atoms.mma import MmaOp
from basedsl_cute.copy_access import move, word
from basedsl_cute.dialect import define
from basedsl_cute.pointer import storage_bits
from basedsl_cute.vector_access import load_vector, store_vector
from basedsl_cute.vectors import splat, to_elements


class LoadCacheMode(enum.Enum):
    """Where loads are cached; values are PTX's cache operators (PTX ISA 9.7.9.1)."""

    ALWAYS = "ca"
    GLOBAL = "cg"
    STREAMING = "cs"
    LAST_USE = "lu"
    NONE = "cv"
    READ_ONLY = "nc"


class CacheEvictionPriority(enum.Enum):
    """How long what an access brings into the L1 cache is worth keeping; values are PTX's (PTX ISA
    9.7.9.2).
    """

    EVICT_NORMAL = "L1::evict_normal"
    EVICT_UNCHANGED = "L1::evict_unchanged"
    EVICT_FIRST = "L1::evict_first"
    EVICT_LAST = "L1::evict_last"
    NO_ALLOCATE = "L1::no_allocate"


class MemoryOrder(enum.Enum):
    """What `make_copy_atom(memory_order=)` may name: copies are weak accesses."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemoryScope(enum.Enum):
    """What `make_copy_atom(memory_scope=)` may name: weak accesses know the block only."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


def thread_layout(width: int, bits: int | None) -> CopyAtomLayout:
    """One thread moves `bits`, by default one element."""
    return algebra.thread_copy(bits or width).in_elements(width)


@dataclass(frozen=True)
class CopyUniversalOp(CopyOp):
    """Ordinary loads and stores between any two memories, of `num_bits_per_copy` (8 to 256)."""

    may_choose_width = True

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        if bits is not None and bits > 256:
            raise DSLTypeError(f"an ordinary copy moves up to 256 bits at once, not {bits}")
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        _no_fields(self, fields)
        bits = atom.num_bits or atom.width
        move(src, dst, bits, pred, name=f"CopyUniversalOp of {bits} bits")


@dataclass(frozen=True)
class CopyG2ROp(CopyOp):
    """Loads from global memory into registers with a cache mode."""

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        _no_fields(self, fields)
        if src.memspace != "gmem" or dst.memspace != "rmem":
            raise DSLTypeError(
                f"CopyG2ROp copies gmem to rmem, not {src.memspace} to {dst.memspace}"
            )
        cache = self.cache_mode.value
        move(src, dst, atom.num_bits or atom.width, pred, cache=cache, name="CopyG2ROp")


@dataclass(frozen=True)
class CopyR2GOp(CopyOp):
    """Stores from registers into global memory."""

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        _no_fields(self, fields)
        if src.memspace != "rmem" or dst.memspace != "gmem":
            raise DSLTypeError(
                f"CopyR2GOp copies rmem to gmem, not {src.memspace} to {dst.memspace}"
            )
        move(src, dst, atom.num_bits or atom.width, pred, name="CopyR2GOp")


def _no_fields(op: CopyOp, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if value is not None:
            raise DSLTypeError(f"{type(op).__name__} takes no {name}=")


@dataclass(frozen=True)
class MmaUniversalOp(MmaOp):
    """A multiply-add of one thread, in the type of its operands."""

    abacc_dtype: Any
    by_columns = True

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        kind = self.abacc_dtype
        return kind, kind, kind, kind

    def layout(self) -> MmaAtomLayout:
        return algebra.thread_mma()

    def issue(self, d: Any, a: Any, b: Any, c: Any) -> None:
        trace = require("gemm")
        bits = storage_bits(self.abacc_dtype)
        pieces = [word(x, bits) for x in (d, a, b, c)]
        define(trace.bindings).gemm(*pieces, atom="universal_fma", loc=trace.loc())

    def issue_column(self, d: Any, a: Any, b: Any, c: Any) -> None:
        trace = require("gemm")
        rows, sums = load_vector(a), load_vector(c)
        (element,) = to_elements(load_vector(b))
        kind = rows.type
        factor = splat(element, kind.shape[0])

        def emit(name: str, *operands: Any) -> Any:
            create = trace.ir.Operation.create
            return create(name, results=[kind], operands=operands, loc=trace.loc()).result

        if self.abacc_dtype.is_float:
            result = emit("math.fma", rows, factor, sums)
        else:
            result = emit("arith.addi", emit("arith.muli", rows, factor), sums)
        store_vector(d, result)
