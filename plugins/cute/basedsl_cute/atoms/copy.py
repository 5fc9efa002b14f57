"""Copy atoms and tiled copies: which thread copies which elements, as static objects.

The emission of an instruction belongs to its operation (`nvgpu`), the loop over a tensor to
`copy_tensors`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from basedsl import Boolean, DSLTypeError, Numeric, TFloat32
from basedsl_cute import algebra
from basedsl_cute.algebra import CopyAtomLayout, CopyTiling
from basedsl_cute.algebra.draw import notebook_svg
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.memory_semantics import WEAK, PlainAccess, plain_access
from basedsl_cute.tensors.coordinate import as_thread
from basedsl_cute.tensors.pointer import storage_bits
from basedsl_cute.tensors.tensor import Tensor, check_partitioned, of_a_thread


class CopyOp(ABC):
    """A copy instruction with its static options. Subclasses are frozen dataclasses."""

    __dsl_leaf__ = True
    may_choose_width = False  # without num_bits_per_copy, accesses are as wide as proven
    takes_whole_tensors = False  # one instruction copies a tensor, whatever its size
    checks_itself = False  # `issue` checks source and destination, which may be no tensors
    is_plain = False  # by loads and stores, which may be ordered

    @abstractmethod
    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """The thread-value layouts of one instruction that copies `bits` bits of `width`-bit
        elements. Raises DSLTypeError for a number of bits that it does not have.
        """

    @abstractmethod
    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one instruction of `atom` that copies the tensor `src` to `dst`.

        `pred` is a dynamic Boolean, or None for always; `fields` are further arguments of
        `cute.copy`, such as the mbarrier `mbar_ptr` at which an asynchronous copy arrives.
        """


@dataclass(frozen=True)
class CopyAtom:
    """One copy instruction on elements of `dtype`; all static. `make_copy_atom` makes it.

    - `op`: the operation, such as `nvgpu.CopyUniversalOp()`.
    - `num_bits`: the bits that one instruction copies; None for the operation's own number, or for
      what contiguity and alignment prove.
    - `access`: the cache operators and the memory order of the instruction's accesses.
    - `fields`: further arguments of the operation by name, as `make_copy_atom` was given them.
    """

    op: CopyOp
    dtype: Any
    num_bits: int | None = None
    access: PlainAccess = WEAK
    fields: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    __dsl_leaf__ = True

    @property
    def value_type(self) -> Any:
        """The element type."""
        return self.dtype

    @property
    def width(self) -> int:
        """Bits of an element in memory."""
        return storage_bits(self.dtype)

    @cached_property
    def tv(self) -> CopyAtomLayout:
        """The thread-value layouts of the instruction."""
        return self.op.layout(self.width, self.num_bits)

    @property
    def thr_id(self) -> Any:
        """The layout of the instruction's threads: their number within the warp or block."""
        return self.tv.thr_id

    @property
    def layout_src_tv(self) -> Any:
        """The layout (thread, value) -> element index in the source."""
        return self.tv.layout_src_tv

    @property
    def layout_dst_tv(self) -> Any:
        """The layout (thread, value) -> element index in the destination."""
        return self.tv.layout_dst_tv

    @property
    def values_src(self) -> int:
        """The number of source elements of one thread and instruction."""
        return int(algebra.size(self.tv.layout_src_tv, 1))

    @property
    def values_dst(self) -> int:
        """The number of destination elements of one thread and instruction."""
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
    """Make the atom of a copy operation for elements of type `dtype`.

    `num_bits_per_copy` is the number of bits that one instruction copies for a thread, a power of
    two from 8. Without it (or with 0), `CopyUniversalOp` copies in the widest accesses, of up to
    128 bits, that alignment and contiguity prove.

    Three more arguments are for operations that copy by plain loads and stores (`CopyUniversalOp`,
    `CopyG2ROp`, `CopyR2GOp`). `memory_order` (`nvgpu.MemoryOrder`, by default weak) orders the
    accesses, of at most 64 bits each, among the threads of `memory_scope` (`nvgpu.MemoryScope`, by
    default the GPU). `l1c_evict_priority` (`nvgpu.CacheEvictionPriority`) is that of accesses to
    global memory; it excludes `memory_order`.

    Raises DSLTypeError for an operation that does not copy so many bits of this element type, and
    for orders and priorities that it does not have.

    >>> import basedsl_cute as cute
    >>> op = cute.nvgpu.CopyUniversalOp()
    >>> atom = cute.make_copy_atom(op, cute.Float32, num_bits_per_copy=128)
    >>> print(atom)
    CopyUniversalOp of Float32, 128 bits
    >>> print(atom.layout_src_tv)
    (1,4):(0,1)
    """
    if not isinstance(op, CopyOp):
        made = isinstance(op, type) and issubclass(op, CopyOp)
        raise DSLTypeError(
            f"make_copy_atom takes a copy operation, got {'a class' if made else repr(op)}",
            hint=f"make one: {op.__name__}()"
            if made
            else "cute.nvgpu.CopyUniversalOp(), or another",
        )
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric)):
        raise DSLTypeError(
            f"make_copy_atom takes an element type, got {dtype!r}",
            hint="for instance cute.Float32, or x.element_type of a tensor",
        )
    access = plain_access(memory_order, memory_scope, l1c_evict_priority)
    if access != WEAK and not op.is_plain:
        raise DSLTypeError(
            f"{type(op).__name__} has no memory_order and no l1c_evict_priority",
            hint="copies by plain loads and stores have: CopyUniversalOp, CopyG2ROp, CopyR2GOp",
        )
    bits = _checked_bits(num_bits_per_copy, dtype)
    if access.order is not None:
        bits = _ordered_bits(bits, dtype)
    atom = CopyAtom(op, dtype, bits, access)
    atom.tv  # noqa: B018  (an operation that does not have this width raises here)
    return atom


def _checked_bits(bits: Any, dtype: Any) -> int | None:
    """The number of bits of one copy, None if it is not given; else DSLTypeError."""
    if bits is None or (type(bits) is int and bits == 0):
        return None
    if type(bits) is not int:
        raise DSLTypeError(f"num_bits_per_copy is a static number, not {bits!r}")
    if bits < 8 or bits & (bits - 1):
        raise DSLTypeError(f"num_bits_per_copy is a power of two from 8, not {bits}")
    if bits % storage_bits(dtype):
        raise DSLTypeError(
            f"{bits} bits are no whole number of {dtype.__name__} elements",
            hint="num_bits_per_copy counts bits: 128 is the widest copy of a thread",
        )
    return bits


def _ordered_bits(bits: int | None, dtype: Any) -> int:
    """The number of bits of one ordered copy, by default those of an element."""
    known = storage_bits(dtype) if bits is None else bits
    if known > 64:
        raise DSLTypeError(f"an ordered copy is of at most 64 bits at once, not {bits}")
    if dtype in (Boolean, TFloat32):
        raise DSLTypeError(f"an ordered copy is of numbers or bits, not of {dtype.__name__}")
    return known


@dataclass(frozen=True)
class TiledCopy:
    """A copy atom repeated over the threads and values of a tile; see `algebra.CopyTiling`.

    `atom` is the instruction, and `tiling` the tile's partition over threads and values.
    `get_slice(thread)` is one thread's part, which partitions tensors.
    """

    atom: CopyAtom
    tiling: CopyTiling

    __dsl_leaf__ = True

    @property
    def op(self) -> CopyOp:
        """The operation of the atom."""
        return self.atom.op

    @property
    def value_type(self) -> Any:
        """The element type."""
        return self.atom.dtype

    @property
    def tiler_mn(self) -> Any:
        """The tiler of the tile: a layout for each mode."""
        tiler = self.tiling.tiler_mn
        if not isinstance(tiler, tuple):
            return tiler
        return tuple([algebra.make_layout(x) if isinstance(x, int) else x for x in tiler])

    @property
    def layout_tv_tiled(self) -> Any:
        """The layout (thread, value) -> position in the tile, column-major."""
        return self.tiling.layout_tv

    @property
    def layout_src_tv_tiled(self) -> Any:
        """The layout (thread, value) -> position in the tile, of the source."""
        return self.tiling.layout_src_tv_tiled

    @property
    def layout_dst_tv_tiled(self) -> Any:
        """The layout (thread, value) -> position in the tile, of the destination."""
        return self.tiling.layout_dst_tv_tiled

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(self.tiling.size)

    @takes_location
    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """The part of thread `thr_idx`, an integer from 0 to `size` - 1, static or dynamic. Raises
        DSLTypeError for a tuple, and for a static number out of this range.
        """
        return ThrCopy(self, as_thread(thr_idx, self.size))

    @takes_location
    def retile(self, tensor: Tensor) -> Tensor:
        """Return a view of `tensor`, a thread's fragment, for instance of an MMA, in this copy's
        order of values: ((values of one instruction), repeats, ...), as `partition_S` and
        `partition_D` give.
        """
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
    """The slice of `tiled_copy` that the thread `thr_idx`, from 0 on, copies; it has the attributes
    of the tiled copy too: `atom`, `size`, `get_slice` of another thread, ...
    """

    tiled_copy: TiledCopy
    thr_idx: Any

    @property
    def atom(self) -> CopyAtom:
        """The atom of the tiled copy."""
        return self.tiled_copy.atom

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.tiled_copy, name)

    @takes_location
    def partition_S(self, src: Tensor) -> Tensor:
        """The view of a tensor that this thread reads: ((atom values, rest values), rest modes...).

        Each leading mode of `src` must be a multiple of the tile's. Raises DSLTypeError for what
        is no tensor.
        """
        check_partitioned(src, "partition_S")
        return self.tiled_copy.tiling.partition("S", src, self.thr_idx)  # type: ignore[no-any-return]

    @takes_location
    def partition_D(self, dst: Tensor) -> Tensor:
        """Return the view of the tensor `dst` that this thread writes, with the modes of
        `partition_S`. Raises DSLTypeError for what is no tensor.
        """
        check_partitioned(dst, "partition_D")
        return self.tiled_copy.tiling.partition("D", dst, self.thr_idx)  # type: ignore[no-any-return]

    @takes_location
    def retile(self, tensor: Tensor) -> Tensor:
        """Return a view of `tensor`, a thread's fragment, in this copy's order of values: see
        `TiledCopy.retile`.
        """
        return self.tiled_copy.retile(tensor)


# Making tiled copies -----------------------------------------------------------------------------


@takes_location
def make_tiled_copy(atom: CopyAtom, layout_tv: Any, tiler_mn: Any) -> TiledCopy:
    """Make a tiled copy of the copy atom `atom` from `layout_tv`, a layout (thread, value) ->
    position in the tile `tiler_mn`.
    """
    return TiledCopy(atom, CopyTiling(_tv(atom), layout_tv, _extents(tiler_mn)))


def _extents(tiler: Any) -> Any:
    """The tiler, with the extent alone for each mode of contiguous elements."""
    if not isinstance(tiler, tuple):
        return tiler
    sizes = [int(algebra.size(x)) for x in tiler]
    layouts = [algebra.make_layout(n) for n in sizes]
    return tuple([n if x == y else x for x, y, n in zip(tiler, layouts, sizes, strict=True)])


@takes_location
def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Any, val_layout: Any) -> TiledCopy:
    """Make a tiled copy of the copy atom `atom` from the layouts of threads, `thr_layout`, and of
    each thread's values, `val_layout`, over the tile.

    The tile is their product; see `cute.make_layout_tv`.

    >>> import basedsl_cute as cute
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    >>> threads = cute.make_layout((4, 8), stride=(8, 1))
    >>> tiled = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, 4)))
    >>> tiled.size, tiled.tiler_mn
    (32, (4:1, 32:1))
    """
    return TiledCopy(atom, algebra.make_copy_tiling_tv(_tv(atom), thr_layout, val_layout))


@takes_location
def make_tiled_copy_A(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """Make a tiled copy whose register side is the fragment of A of `tiled_mma`.

    `atom` is the copy instruction, made by `make_copy_atom`. Raises DSLTypeError if a thread of it
    copies other numbers of elements than a thread of the MMA holds.
    """
    return _of_mma(atom, tiled_mma, "A")


@takes_location
def make_tiled_copy_B(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """Make a tiled copy whose register side is the fragment of B of `tiled_mma`.

    `atom` is the copy instruction, made by `make_copy_atom`. Raises DSLTypeError if a thread of it
    copies other numbers of elements than a thread of the MMA holds.
    """
    return _of_mma(atom, tiled_mma, "B")


@takes_location
def make_tiled_copy_C(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """Make a tiled copy whose register side is the fragment of C of `tiled_mma`.

    `atom` is the copy instruction, made by `make_copy_atom`. Raises DSLTypeError if a thread of it
    copies other numbers of elements than a thread of the MMA holds.
    """
    return _of_mma(atom, tiled_mma, "C")


def _tv(atom: Any) -> CopyAtomLayout:
    """The thread-value layouts of a copy atom; DSLTypeError for any other object."""
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
    """Raise DSLTypeError unless a thread's values of the operand are whole instructions."""
    moved = int(algebra.size(_tv(atom).layout_ref_tv, 1))
    if not hasattr(tiled_mma, "tiling"):
        raise DSLTypeError(
            f"make_tiled_copy_{operand} takes a tiled MMA, not {tiled_mma}",
            hint="cute.make_tiled_mma(operation, atom layout)",
        )
    held = int(algebra.size(tiled_mma.tiling.tv_layout_tiled(operand), 1))
    if held % moved:
        raise DSLTypeError(
            f"a thread holds {held} values of {operand} in the tile; the copy moves {moved}",
            notes=(
                (f"the copy is {atom.op} of {atom.dtype.__name__}", None),
                (f"the tile is that of {tiled_mma}", None),
            ),
            hint="enlarge the tile with permutation_mnk= of make_tiled_mma, or move fewer at once",
        )


@takes_location
def make_tiled_copy_C_atom(atom: CopyAtom, tiled_mma: Any) -> TiledCopy:
    """Make the smallest tiled copy of a tiled MMA's C: one instruction of the atom for each thread.

    It serves to store an accumulator of `tiled_mma` piece by piece. `atom` is made by
    `make_copy_atom`.
    """
    _check_values(atom, tiled_mma, "C")
    return TiledCopy(atom, algebra.make_copy_tiling_C_atom(atom.tv, tiled_mma.tiling))


@takes_location
def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Make a tiled copy of another atom with the source partition of `tiled_copy`."""
    return TiledCopy(atom, algebra.make_copy_tiling_of_copy(atom.tv, tiled_copy.tiling, "S"))


@takes_location
def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Make a tiled copy of another atom with the destination partition of `tiled_copy`."""
    return TiledCopy(atom, algebra.make_copy_tiling_of_copy(atom.tv, tiled_copy.tiling, "D"))


@takes_location
def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: Any, data_layout: Any) -> TiledCopy:
    """Make a tiled copy of the copy atom `atom` from `atom_layout_tv`, a layout (thread, value) ->
    offset into `data_layout`, which has to be injective and to contain these offsets.
    """
    return TiledCopy(atom, algebra.make_cotiled_copy(atom.tv, atom_layout_tv, data_layout))
