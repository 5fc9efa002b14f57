"""Copy atoms and tiled copies: who moves what, as static objects around the layout algebra.

How an instruction is issued belongs to its operation (`nvgpu`); looping over tensors is `copying`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Boolean, Numeric, TFloat32
from basedsl_cute import algebra
from basedsl_cute.algebra import CopyAtomLayout, CopyTiling
from basedsl_cute.algebra.draw import notebook_svg
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.memory_semantics import WEAK, PlainAccess, plain_access
from basedsl_cute.tensors.pointer import storage_bits
from basedsl_cute.tensors.tensor import Tensor, as_thread, check_partitioned, of_a_thread


class CopyOp:
    """What configures a copy instruction. Subclasses are frozen dataclasses."""

    __dsl_leaf__ = True
    may_choose_width = False  # without num_bits_per_copy, accesses are as wide as proven
    takes_whole_tensors = False  # one instruction copies a tensor, whatever its size
    is_plain = False  # by loads and stores, which may be ordered

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """The threads and values of one instruction, in elements of `width` bits."""
        raise NotImplementedError

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one instruction; `pred` is a dynamic Boolean or None."""
        raise NotImplementedError


@dataclass(frozen=True)
class CopyAtom:
    """One copy instruction of an operation on elements of `dtype`. Everything is static."""

    op: CopyOp
    dtype: Any
    num_bits: int | None = None
    access: PlainAccess = WEAK
    fields: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    __dsl_leaf__ = True

    @property
    def value_type(self) -> Any:
        return self.dtype

    @property
    def width(self) -> int:
        """Bits of an element in memory."""
        return storage_bits(self.dtype)

    @cached_property
    def tv(self) -> CopyAtomLayout:
        """The layouts of the instruction's threads and values."""
        return self.op.layout(self.width, self.num_bits)

    @property
    def thr_id(self) -> Any:
        return self.tv.thr_id

    @property
    def layout_src_tv(self) -> Any:
        return self.tv.layout_src_tv

    @property
    def layout_dst_tv(self) -> Any:
        return self.tv.layout_dst_tv

    @property
    def values_src(self) -> int:
        """Elements that one thread gives to an instruction."""
        return int(algebra.size(self.tv.layout_src_tv, 1))

    @property
    def values_dst(self) -> int:
        """Elements that one thread gets from an instruction."""
        return int(algebra.size(self.tv.layout_dst_tv, 1))

    def __str__(self) -> str:
        bits = "as wide as proven" if self.num_bits is None else f"{self.num_bits} bits"
        return f"{type(self.op).__name__} of {self.dtype.__name__}, {bits}"


@takes_location
def make_copy_atom(
    op: CopyOp,
    dtype: Any,
    *,
    num_bits_per_copy: int | None = None,
    memory_scope: Any = None,
    memory_order: Any = None,
    l1c_evict_priority: Any = None,
) -> CopyAtom:
    """The copy of `num_bits_per_copy` at once; without it, `CopyUniversalOp` copies as wide as
    alignment and contiguity prove.

    For copies between registers and memory by plain loads and stores (`CopyUniversalOp`,
    `CopyG2ROp`, `CopyR2GOp`): `memory_order` (`nvgpu.MemoryOrder`, weak) among the threads of
    `memory_scope` (`nvgpu.MemoryScope`, the GPU), of at most 64 bits at once; or
    `l1c_evict_priority` (`nvgpu.CacheEvictionPriority`) of what is in global memory.
    """
    if not isinstance(op, CopyOp):
        raise DSLTypeError(f"make_copy_atom takes a copy operation, got {op!r}")
    if num_bits_per_copy is not None and type(num_bits_per_copy) is not int:
        raise DSLTypeError(f"num_bits_per_copy is a static number, not {num_bits_per_copy!r}")
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric)):
        raise DSLTypeError(f"make_copy_atom takes an element type, got {dtype!r}")
    access = plain_access(memory_order, memory_scope, l1c_evict_priority)
    if access != WEAK and not op.is_plain:
        raise DSLTypeError(
            f"{type(op).__name__} is no plain load or store: it has no memory_order and no "
            "l1c_evict_priority"
        )
    bits = num_bits_per_copy or None
    if bits is not None and (type(bits) is not int or bits < 8 or bits & (bits - 1)):
        raise DSLTypeError(f"num_bits_per_copy is a power of two from 8, not {num_bits_per_copy}")
    if bits is not None and bits % storage_bits(dtype):
        raise DSLTypeError(f"{bits} bits are no whole number of {dtype.__name__} elements")
    if access.order is not None and (bits or storage_bits(dtype)) > 64:
        raise DSLTypeError(f"an ordered copy is of at most 64 bits at once, not {bits}")
    if access.order is not None and dtype in (Boolean, TFloat32):
        raise DSLTypeError(f"an ordered copy is of numbers or bits, not of {dtype.__name__}")
    if access.order is not None and bits is None:
        bits = storage_bits(dtype)
    atom = CopyAtom(op, dtype, bits, access)
    atom.tv  # noqa: B018  (an operation that does not know this width says so now)
    return atom


@dataclass(frozen=True)
class TiledCopy:
    """An atom repeated over threads and values of a tile; see `algebra.CopyTiling`."""

    atom: CopyAtom
    tiling: CopyTiling

    __dsl_leaf__ = True

    @property
    def op(self) -> CopyOp:
        return self.atom.op

    @property
    def value_type(self) -> Any:
        return self.atom.dtype

    @property
    def tiler_mn(self) -> Any:
        return self.tiling.tiler_mn

    @property
    def layout_tv_tiled(self) -> Any:
        """(thread, value) -> position in the tile."""
        return self.tiling.layout_tv

    @property
    def layout_src_tv_tiled(self) -> Any:
        return self.tiling.layout_src_tv_tiled

    @property
    def layout_dst_tv_tiled(self) -> Any:
        return self.tiling.layout_dst_tv_tiled

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(self.tiling.size)

    @takes_location
    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """The part of thread `thr_idx`."""
        return ThrCopy(self, as_thread(thr_idx, self.size))

    @takes_location
    def retile(self, tensor: Tensor) -> Tensor:
        """A fragment, for instance of an MMA, in the order in which this copy moves values."""
        return self.tiling.retile(tensor)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name in ("partition_S", "partition_D"):
            raise of_a_thread(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        return f"TiledCopy({self.atom}, TV {self.tiling.layout_tv}, tile {self.tiling.tiler_mn})"

    def _repr_svg_(self) -> str | None:
        return notebook_svg(self.tiling)


@dataclass(frozen=True)
class ThrCopy:
    """What one thread of a tiled copy moves."""

    tiled_copy: TiledCopy
    thr_idx: Any

    @property
    def atom(self) -> CopyAtom:
        return self.tiled_copy.atom

    @takes_location
    def partition_S(self, src: Tensor) -> Tensor:
        """What this thread reads of a tensor: ((atom values, rest values), rest modes...)."""
        check_partitioned(src, "partition_S")
        return self.tiled_copy.tiling.partition("S", src, self.thr_idx)  # type: ignore[no-any-return]

    @takes_location
    def partition_D(self, dst: Tensor) -> Tensor:
        """What this thread writes of a tensor: ((atom values, rest values), rest modes...)."""
        check_partitioned(dst, "partition_D")
        return self.tiled_copy.tiling.partition("D", dst, self.thr_idx)  # type: ignore[no-any-return]

    @takes_location
    def retile(self, tensor: Tensor) -> Tensor:
        return self.tiled_copy.retile(tensor)


# Making tiled copies -----------------------------------------------------------------------------


@takes_location
def make_tiled_copy(atom: CopyAtom, layout_tv: Any, tiler_mn: Any) -> TiledCopy:
    """From a layout (thread, value) -> position in the tile `tiler_mn`."""
    return TiledCopy(atom, CopyTiling(_tv(atom), layout_tv, tiler_mn))


@takes_location
def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Any, val_layout: Any) -> TiledCopy:
    """From the layouts of threads and of values over the tile; see `make_layout_tv`."""
    return TiledCopy(atom, algebra.make_copy_tiling_tv(_tv(atom), thr_layout, val_layout))


@takes_location
def make_tiled_copy_A(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """A copy whose register side is the MMA's fragment of A."""
    return _of_mma(atom, tiled_mma, "A")


@takes_location
def make_tiled_copy_B(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """A copy whose register side is the MMA's fragment of B."""
    return _of_mma(atom, tiled_mma, "B")


@takes_location
def make_tiled_copy_C(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """A copy whose register side is the MMA's fragment of C."""
    return _of_mma(atom, tiled_mma, "C")


def _tv(atom: Any) -> CopyAtomLayout:
    """The threads and values of a copy atom; DSLTypeError for what is none."""
    if not isinstance(atom, CopyAtom):
        raise DSLTypeError(
            f"a tiled copy is made of a copy atom, not of {atom}",
            hint="cute.make_copy_atom(operation, element type)",
        )
    return atom.tv


def _of_mma(atom: CopyAtom, tiled_mma: Any, operand: str) -> TiledCopy:
    _check_values(atom, tiled_mma, operand)
    tiling = algebra.make_copy_tiling_of_mma(atom.tv, tiled_mma.tiling, operand)
    return TiledCopy(atom, tiling)


def _check_values(atom: CopyAtom, tiled_mma: Any, operand: str) -> None:
    """DSLTypeError unless what a thread holds of the tile is whole instructions of the copy."""
    moved = int(algebra.size(_tv(atom).layout_ref_tv, 1))
    if not hasattr(tiled_mma, "tiling"):
        raise DSLTypeError(
            f"make_tiled_copy_{operand} takes a tiled MMA, not {tiled_mma}",
            hint="cute.make_tiled_mma(operation, atom layout)",
        )
    held = int(algebra.size(tiled_mma.tiling.tv_layout_tiled(operand), 1))
    if held % moved:
        raise DSLTypeError(
            f"{atom.op} moves {moved} {atom.dtype.__name__} of each thread, and a thread holds "
            f"{held} values of {operand} in the tile of {tiled_mma}",
            hint="enlarge the tile with permutation_mnk= of make_tiled_mma, or move fewer at once",
        )


@takes_location
def make_tiled_copy_C_atom(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """The smallest copy tile that one store per thread of the MMA's C fragment needs."""
    _check_values(atom, tiled_mma, "C")
    return TiledCopy(atom, algebra.make_copy_tiling_C_atom(atom.tv, tiled_mma.tiling))


@takes_location
def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """A copy that matches the source side of another."""
    return TiledCopy(atom, algebra.make_copy_tiling_of_copy(atom.tv, tiled_copy.tiling, "S"))


@takes_location
def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """A copy that matches the destination side of another."""
    return TiledCopy(atom, algebra.make_copy_tiling_of_copy(atom.tv, tiled_copy.tiling, "D"))


@takes_location
def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: Any, data_layout: Any) -> TiledCopy:
    """From the offsets into `data_layout` that threads and values are to touch."""
    return TiledCopy(atom, algebra.make_cotiled_copy(atom.tv, atom_layout_tv, data_layout))
