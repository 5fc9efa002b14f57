"""MMA atoms, tiled MMAs and `cute.gemm`: one matrix instruction, repeated over threads and tiles.

The emission of an instruction belongs to its operation (`nvgpu`).
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute import algebra
from basedsl_cute.algebra import MmaAtomLayout, MmaTiling
from basedsl_cute.algebra.draw import notebook_svg
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.coordinate import as_thread
from basedsl_cute.tensors.make_tensor import make_rmem_tensor
from basedsl_cute.tensors.tensor import Tensor, check_partitioned, of_a_thread


class MmaOp(ABC):
    """A matrix instruction with its static options. Subclasses are frozen dataclasses."""

    __dsl_leaf__ = True

    # The fields that can be set at run time (`TiledMma.set`), with their initial values.
    fields: Mapping[str, Any] = {}

    # True of a multiply-add of one element that `issue_column` repeats over a column of D and A.
    # Columns are read and written as vectors, which traces faster than single elements.
    by_columns = False

    # True of an instruction for a block or a pair: get_slice takes the block's place in the pair.
    threads_are_blocks = False

    @property
    @abstractmethod
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""

    def issue_column(self, d: Any, a: Any, b: Any, c: Any, upwards: bool) -> None:
        """Emit d[m] = a[m] * b + c[m] for all m, from the last to the first if `upwards`. Only
        operations with `by_columns` define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define issue_column")

    @abstractmethod
    def layout(self) -> MmaAtomLayout:
        """The shape (M, N, K) and the thread-value layouts of the instruction."""

    def check_field(self, name: str, value: Any) -> None:  # noqa: B027
        """Raise DSLTypeError for a value that the field cannot have, by default for none."""

    def field_value(self, name: str, value: Any) -> Any:
        """The value of a field as loops and branches carry it."""
        return value

    def check_whole(  # noqa: B027
        self, operand: str, x: Any, tile: tuple[int, int]
    ) -> None:
        """Raise DSLTypeError for an operand "A" or "B" in shared memory that is not whole tiles of
        extents `tile`, where the instruction would read beyond it; by default for none.
        """

    def make_fragment(self, operand: str, x: Any) -> Any:
        """The fragment of a partitioned operand "A", "B" or "C" (a tensor, or a shape) in the form
        that the instruction takes: registers, unless the operation overrides this.
        """
        return _registers(x, self.dtypes["DABC".index(operand)])

    def multiply(self, fields: Mapping[str, Any], d: Any, a: Any, b: Any, c: Any) -> None:
        """Emit D = A B + C on one thread's fragments, by as many instructions as they need."""
        multiply_each(self, d, a, b, c)

    def issue(self, d: Any, a: Any, b: Any, c: Any) -> None:
        """Emit one instruction on fragments of its values. Operations that define `multiply` or
        `issue_column` have none.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define issue")


@dataclass(frozen=True)
class _MmaPlan:
    """The static part of an atom or a tiled MMA, one leaf of the tree."""

    op: MmaOp
    atom: MmaAtomLayout
    tiling: MmaTiling | None = None

    __dsl_leaf__ = True


class MmaAtom:
    """One matrix instruction of the operation `op`, with the fields that can be set at run time.

    Fields are state like variables: loops and branches carry what `set` changes in them.
    """

    def __init__(self, op: MmaOp) -> None:
        self._plan = _MmaPlan(op, op.layout())
        self._fields = dict(op.fields)

    @property
    def op(self) -> MmaOp:
        """The operation of the atom."""
        return self._plan.op

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The extents (M, N, K) of one instruction."""
        return self._plan.atom.shape_mnk

    @property
    def thr_id(self) -> Any:
        """The layout of the instruction's threads: their number within the warp or warpgroup."""
        return self._plan.atom.thr_id

    @property
    def tv_layout_A(self) -> Any:
        """The layout (thread, value) -> position in A (M, K), column-major."""
        return self._plan.atom.tv_layout_A

    @property
    def tv_layout_B(self) -> Any:
        """The layout (thread, value) -> position in B (N, K), column-major."""
        return self._plan.atom.tv_layout_B

    @property
    def tv_layout_C(self) -> Any:
        """The layout (thread, value) -> position in C (M, N), column-major."""
        return self._plan.atom.tv_layout_C

    @takes_location
    def set(self, field: Any, value: Any) -> None:
        """Set a field of the instruction, for the `cute.gemm` calls that follow.

        `field` is a member of the operation's `Field` enum or its name, `value` a Boolean or number
        as the field takes. Raises DSLTypeError for an unknown field or a value that it cannot have.

        >>> import basedsl_cute as cute
        >>> from basedsl_cute.nvgpu import warpgroup
        >>> k_major = warpgroup.OperandMajorMode.K
        >>> op = warpgroup.MmaF16BF16Op(
        ...     cute.Float16, cute.Float32, (64, 128, 16), warpgroup.OperandSource.SMEM,
        ...     k_major, k_major,
        ... )
        >>> mma = cute.make_tiled_mma(op)
        >>> mma.set(warpgroup.Field.ACCUMULATE, False)  # D = A B, without C
        >>> mma.get(warpgroup.Field.ACCUMULATE)
        False
        """
        name = self._field(field)
        self.op.check_field(name, value)
        self._fields[name] = self.op.field_value(name, value)

    @takes_location
    def get(self, field: Any) -> Any:
        """The current value of a field; DSLTypeError for an unknown one."""
        return self._fields[self._field(field)]

    def _field(self, field: Any) -> str:
        name = str(field.value if isinstance(field, enum.Enum) else field)
        if name not in self._fields:
            known = ", ".join(f"Field.{known.upper()}" for known in self._fields)
            raise DSLTypeError(
                f"{type(self.op).__name__} has no field {name.upper()} to set or get",
                hint=f"it has {known}" if known else "it has no fields at all",
            )
        return name

    def gemm(self, d: Any, a: Any, b: Any, c: Any) -> None:
        """Emit D = A B + C on one thread's fragments: `cute.gemm(self, d, a, b, c)`."""
        self.op.multiply(self._fields, d, a, b, c)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MmaAtom)
            and self._plan == other._plan
            and all(self._fields[name] is other._fields[name] for name in self._fields)
        )

    def __hash__(self) -> int:
        return hash(self._plan)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.op})"


@takes_location
def make_mma_atom(op: MmaOp) -> MmaAtom:
    """Make the atom of the MMA operation `op` (such as `nvgpu.warp.MmaF16BF16Op`), without
    repetition; DSLTypeError for anything else.
    """
    return MmaAtom(_operation(op, "make_mma_atom"))


def _operation(op: Any, what: str) -> MmaOp:
    if not isinstance(op, MmaOp):
        raise DSLTypeError(
            f"{what} takes an MMA operation, got {op!r}",
            hint="make one, for example nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))",
        )
    return op


class TiledMma(MmaAtom):
    """An MMA atom repeated over threads and over the tile; see `algebra.MmaTiling`.

    - `op`: the operation, such as `nvgpu.warp.MmaF16BF16Op(...)`.
    - `atom_layout_mnk`: the layout of the atom's copies over M, N and K, one for each group of
      threads that issues the instruction.
    - `permutation_mnk`: for M, N and K the extent of the tile or a layout that permutes it; None
      for the atoms' own.

    `get_slice(thread)` is one thread's part, which partitions tensors.
    """

    def __init__(self, op: MmaOp, atom_layout_mnk: Any, permutation_mnk: Any) -> None:
        super().__init__(op)
        atom = self._plan.atom
        tiling = algebra.make_mma_tiling(atom, atom_layout_mnk, permutation_mnk)
        self._plan = _MmaPlan(op, atom, tiling)

    @property
    def tiling(self) -> MmaTiling:
        """The partition of the tile over threads, without the instruction."""
        assert self._plan.tiling is not None
        return self._plan.tiling

    @property
    def tv_layout_A_tiled(self) -> Any:
        """The layout (thread, value) -> position in the tile of A (M, K)."""
        return self.tiling.tv_layout_A_tiled

    @property
    def tv_layout_B_tiled(self) -> Any:
        """The layout (thread, value) -> position in the tile of B (N, K)."""
        return self.tiling.tv_layout_B_tiled

    @property
    def tv_layout_C_tiled(self) -> Any:
        """The layout (thread, value) -> position in the tile of C (M, N)."""
        return self.tiling.tv_layout_C_tiled

    @property
    def thr_layout_vmnk(self) -> Any:
        """The layout (thread of the atom, M, N, K) -> thread."""
        return self.tiling.thr_layout_vmnk

    @property
    def permutation_mnk(self) -> Any:
        """The tilers of M, N and K that enlarge or reorder the tile, as given; None for default."""
        return self.tiling.permutation_mnk

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(self.tiling.size)

    def get_tile_size(self, mode: int) -> int:
        """The extent of the tile in mode M (0), N (1) or K (2), in elements."""
        return int(self.tiling.tile_shape_mnk[mode])

    @takes_location
    def get_slice(self, thr_idx: Any) -> ThrMma:
        """The part of thread `thr_idx`, an integer from 0 to `size` - 1, static or dynamic.

        Operands that wgmma reads from shared memory are the same for all threads of a warpgroup.
        Raises DSLTypeError for a tuple, and for a static number out of range.
        """
        return ThrMma(self, as_thread(thr_idx, self.size))

    @takes_location
    def partition_shape_A(self, shape_mk: Any) -> Any:
        """Return the shape of one thread's part of an A of shape `shape_mk`, (M, K): (values,
        MMA_M, MMA_K).
        """
        return self.tiling.partition_shape("A", shape_mk)

    @takes_location
    def partition_shape_B(self, shape_nk: Any) -> Any:
        """Return the shape of one thread's part of a B of shape `shape_nk`, (N, K): (values,
        MMA_N, MMA_K).
        """
        return self.tiling.partition_shape("B", shape_nk)

    @takes_location
    def partition_shape_C(self, shape_mn: Any) -> Any:
        """Return the shape of one thread's part of a C of shape `shape_mn`, (M, N): (values,
        MMA_M, MMA_N).
        """
        return self.tiling.partition_shape("C", shape_mn)

    @takes_location
    def make_fragment_A(self, a: Any) -> Any:
        """Return the fragment of `a`, a partitioned A (a tensor, or a shape), in the form that the
        instruction takes: uninitialised registers, or descriptors of the shared memory that wgmma
        reads.
        """
        return self.op.make_fragment("A", a)

    @takes_location
    def make_fragment_B(self, b: Any) -> Any:
        """Return the fragment of `b`, a partitioned B (a tensor, or a shape): see
        `make_fragment_A`.
        """
        return self.op.make_fragment("B", b)

    @takes_location
    def make_fragment_C(self, c: Any) -> Tensor:
        """Return uninitialised registers for `c`, a partitioned accumulator (a tensor, or a
        shape).
        """
        made: Tensor = self.op.make_fragment("C", c)
        return made

    # Programs that make copies in the order of an operand's fragments use these names.
    def _thrfrg_A(self, layout: Any) -> Any:
        return self.tiling.thrfrg("A", layout)

    def _thrfrg_B(self, layout: Any) -> Any:
        return self.tiling.thrfrg("B", layout)

    def _thrfrg_C(self, layout: Any) -> Any:
        return self.tiling.thrfrg("C", layout)

    def __getattr__(self, name: str) -> Any:
        if name in ("partition_A", "partition_B", "partition_C"):
            raise of_a_thread(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        m, n, k = self.tiling.tile_shape_mnk
        return (
            f"TiledMma({self.op}, {self.size} threads, tile ({m},{n},{k}), "
            f"threads VMNK {self.thr_layout_vmnk})"
        )

    __repr__ = __str__

    def _repr_svg_(self) -> str | None:
        return notebook_svg(self.tiling)


@dataclass(frozen=True)
class ThrMma:
    """The slice of `tiled_mma` that the thread `thr_idx`, from 0 on, multiplies; it has the
    attributes of the tiled MMA too: `op`, `make_fragment_A`, ...
    """

    tiled_mma: TiledMma
    thr_idx: Any

    @takes_location
    def partition_A(self, a: Tensor) -> Tensor:
        """Return this thread's part of the tensor `a` (M, K, ...): (values, MMA_M, MMA_K, ...)."""
        return self._part("A", a)

    @takes_location
    def partition_B(self, b: Tensor) -> Tensor:
        """Return this thread's part of the tensor `b` (N, K, ...): (values, MMA_N, MMA_K, ...)."""
        return self._part("B", b)

    @takes_location
    def partition_C(self, c: Tensor) -> Tensor:
        """Return this thread's part of the tensor `c` (M, N, ...): (values, MMA_M, MMA_N, ...)."""
        return self._part("C", c)

    def _part(self, operand: str, x: Tensor) -> Tensor:
        check_partitioned(x, f"partition_{operand}")
        mma = self.tiled_mma
        if operand != "C":
            tile = (mma.get_tile_size("AB".index(operand)), mma.get_tile_size(2))
            mma.op.check_whole(operand, x, tile)
        return mma.tiling.partition(operand, x, self.thr_idx)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.tiled_mma, name)


def _registers(x: Any, dtype: Any) -> Tensor:
    if isinstance(x, Tensor):
        layout = x.layout
        while isinstance(layout, algebra.ComposedLayout):
            layout = layout.outer
        return make_rmem_tensor(algebra.make_fragment_like(layout), dtype)
    return make_rmem_tensor(x, dtype)


@takes_location
def make_tiled_mma(
    op_or_atom: Any, atom_layout_mnk: Any = (1, 1, 1), permutation_mnk: Any = None
) -> TiledMma:
    """Repeat an MMA instruction over groups of threads and over a tile.

    `op_or_atom` is an MMA operation or atom, `atom_layout_mnk` a shape or layout of the groups of
    threads along (M, N, K). `permutation_mnk` has a tiler for each of M, N and K: an extent that
    enlarges the tile, a layout that also reorders it, or None. Raises DSLTypeError for anything
    that is no MMA operation, and LayoutError for tilers that the instruction does not divide.

    >>> import basedsl_cute as cute
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    >>> mma = cute.make_tiled_mma(op, (2, 2, 1), permutation_mnk=(32, 32, 16))
    >>> mma.size, [mma.get_tile_size(mode) for mode in range(3)]
    (128, [32, 32, 16])
    """
    op = op_or_atom.op if isinstance(op_or_atom, MmaAtom) else op_or_atom
    return TiledMma(_operation(op, "make_tiled_mma"), atom_layout_mnk, permutation_mnk)


# Multiplying -------------------------------------------------------------------------------------


@takes_location
def gemm(mma: Any, d: Tensor, a: Any, b: Any, c: Tensor) -> None:
    """Emit `d` = `a` `b` + `c` on one thread's fragments by `mma`, an MMA atom, a tiled MMA or a
    thread's slice of one; `d` may be `c`.

    Fragments have the modes (V) x (V) -> (V), (V, M) x (V, N) -> (V, M, N), or (V, M, K) x
    (V, N, K) -> (V, M, N), where V are the values of one instruction. Shapes are static. Raises
    DSLTypeError for modes that do not fit together and for other element types than the
    operation's.

    >>> import basedsl_cute as cute
    >>> @cute.jit
    ... def multiply(mma: cute.Constexpr, thread, a: cute.Tensor, b: cute.Tensor):
    ...     part = mma.get_slice(thread)
    ...     fragment_a = mma.make_fragment_A(part.partition_A(a))
    ...     fragment_b = mma.make_fragment_B(part.partition_B(b))
    ...     accumulator = mma.make_fragment_C(mma.partition_shape_C((a.shape[0], b.shape[0])))
    ...     accumulator.fill(0.0)
    ...     # ... copies of the operands into the fragments ...
    ...     cute.gemm(mma, accumulator, fragment_a, fragment_b, accumulator)
    """
    if isinstance(mma, ThrMma):
        mma = mma.tiled_mma
    if not isinstance(mma, MmaAtom):
        raise DSLTypeError(f"gemm takes a tiled MMA or an MMA atom, got {type(mma).__name__}")
    mma.gemm(d, a, b, c)


@takes_location
def mma_atom_call(atom: Any, d: Tensor, a: Any, b: Any, c: Tensor) -> None:
    """Emit `d` = `a` `b` + `c` as exactly one instruction of the MMA atom `atom`, on fragments with
    the values of one.

    Raises DSLTypeError for larger fragments.
    """
    if not isinstance(atom, MmaAtom):
        raise DSLTypeError(f"mma_atom_call takes an MMA atom, got {type(atom).__name__}")
    for name, x in zip("dabc", (d, a, b, c), strict=True):
        if getattr(x, "shape", None) is not None and extents(x) != (1, 1):
            raise DSLTypeError(
                f"mma_atom_call: {name} of shape {x.shape} is more than one instruction takes",
                hint="cute.gemm loops over the modes behind the values",
            )
    atom.gemm(d, a, b, c)


def multiply_each(op: MmaOp, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """Emit one instruction for each position in M, N and K of fragments in registers."""
    _check_types(op, d, a, b, c)
    _check_values(op, d, a, b, c)
    ms, ka = extents(a)
    ns, kb = extents(b)
    md, nd = extents(d)
    if ka != kb or (ms, ns) != (md, nd) or extents(c) != (md, nd):
        raise disagree(d, a, b, c)
    if op.by_columns and ms > 1:
        _multiply_columns(op, d, a, b, c, ns, ka)
        return
    rows, columns = parts(a, ms, ka), parts(b, ns, ka)
    results, added = parts(d, ms, ns), parts(c, ms, ns)
    for k in range(ka):
        for m in range(ms):
            for n in range(ns):
                at = m + ms * n
                first = added[at] if k == 0 else results[at]
                op.issue(results[at], rows[m + ms * k], columns[n + ns * k], first)


def _multiply_columns(
    op: MmaOp, d: Tensor, a: Tensor, b: Tensor, c: Tensor, ns: int, ks: int
) -> None:
    """Emit the products of all rows of A with one element of B at a time, down and up again: each
    instruction then shares a source with the one before it, which is not read twice.
    """
    columns, elements = parts(a, 1, ks), parts(b, ns, ks)
    results, added = parts(d, 1, ns), parts(c, 1, ns)
    for k in range(ks):
        for n in range(ns):
            first = added[n] if k == 0 else results[n]
            op.issue_column(results[n], columns[k], elements[n + ns * k], first, n % 2 == 1)


def disagree(d: Any, a: Any, b: Any, c: Any) -> DSLTypeError:
    """Return the error for fragments whose modes do not fit together, which names the mode."""
    (ms, ka), (ns, kb) = extents(a), extents(b)
    pairs = [("K", "A", ka, "B", kb)]
    for name, (m, n) in (("D", extents(d)), ("C", extents(c))):
        pairs += [("M", "A", ms, name, m), ("N", "B", ns, name, n)]
    mode, one, x, other, y = next(pair for pair in pairs if pair[2] != pair[4])
    shapes = zip("ABCD", (a, b, c, d), strict=True)
    return DSLTypeError(
        f"gemm: mode {mode} of {one} has extent {x}, but that of {other} has {y}",
        notes=tuple((f"{name} has the shape {fragment.shape}", None) for name, fragment in shapes),
        hint="fragments are A (V, M, K), B (V, N, K), C and D (V, M, N)",
    )


def _check_types(op: MmaOp, *tensors: Any) -> None:
    for name, tensor, dtype in zip("dabc", tensors, op.dtypes, strict=True):
        if not isinstance(tensor, Tensor) or not algebra.is_static(tensor.shape):
            raise DSLTypeError(f"gemm: {name} is {tensor}, not a fragment of static shape")
        if tensor.element_type is not dtype:
            raise DSLTypeError(
                f"{name} has elements of {tensor.element_type.__name__}, not {dtype.__name__}",
                notes=((f"the operation is {op}", None),),
            )


def _check_values(op: MmaOp, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    layout = op.layout()
    for name, tensor, operand in zip("dabc", (d, a, b, c), "CABC", strict=True):
        wanted = algebra.size(getattr(layout, f"tv_layout_{operand}").shape, [1])
        values = algebra.size(tensor.shape, [0])
        if values != wanted:
            raise DSLTypeError(
                f"gemm: {name} has {values} values for each instruction, which takes {wanted}",
                notes=(
                    (f"the instruction is {op}", None),
                    (f"{name} has the shape {tensor.shape}", None),
                ),
                hint=f"make it with make_fragment_{operand}, of what partition_{operand} gives",
            )


def extents(x: Any) -> tuple[int, int]:
    """The extents of the two modes after the values; 1 for missing ones."""
    rank = algebra.rank(x.layout)
    if rank > 3:
        raise DSLTypeError(
            f"gemm: the fragment {x} has more than three modes",
            hint="choose a stage or tile: fragment[None, None, None, stage]",
        )
    sizes = [int(algebra.size(x.shape, [i])) for i in range(1, rank)]
    return (*sizes, 1, 1)[0], (*sizes, 1, 1)[1]


def parts(x: Tensor, first: int, second: int) -> list[Tensor]:
    """The parts of a fragment for each instruction, the first mode after the values fastest."""
    count = first * second
    values = int(algebra.size(x.shape)) // count
    layout = x.layout
    piece = algebra.coalesce(algebra.composition(layout, algebra.Layout(values, 1)))
    return [x._at(layout(i * values), piece) for i in range(count)]
