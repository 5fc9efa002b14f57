"""MMA atoms, tiled MMAs and `cute.gemm`: one matrix instruction, repeated over threads and tiles.

How an instruction is issued belongs to its operation (`nvgpu`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute import algebra
from basedsl_cute.algebra import MmaAtomLayout, MmaTiling
from basedsl_cute.algebra.draw import notebook_svg
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.make_tensor import make_rmem_tensor
from basedsl_cute.tensors.tensor import Tensor, as_thread, check_partitioned, of_a_thread


class MmaOp:
    """What configures a matrix instruction. Subclasses are frozen dataclasses."""

    __dsl_leaf__ = True

    # What of the instruction can be set after it was made (`TiledMma.set`), and the values that it
    # begins with.
    fields: Mapping[str, Any] = {}

    # A multiply-add of one element, which `issue_column` repeats over a column of D and A: they are
    # read and written as vectors, which takes less time than an element each.
    by_columns = False

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        raise NotImplementedError

    def issue_column(self, d: Any, a: Any, b: Any, c: Any, upwards: bool) -> None:
        """d[m] = a[m] * b + c[m], from the first m on or, `upwards`, from the last."""
        raise NotImplementedError

    def layout(self) -> MmaAtomLayout:
        """The shape, threads and values of the instruction."""
        raise NotImplementedError

    def check_field(self, name: str, value: Any) -> None:
        """DSLTypeError for a value that the field cannot have."""

    def check_whole(self, operand: str, x: Any, tile: tuple[int, int]) -> None:
        """DSLTypeError for an operand "A" or "B" whose parts, `tile` of them to a step, would reach
        beyond it.
        """

    def make_fragment(self, operand: str, x: Any) -> Any:
        """What the instruction takes of a partitioned operand "A", "B" or "C" (a tensor, or a
        shape): registers, unless the operation says otherwise.
        """
        return _registers(x, self.dtypes["DABC".index(operand)])

    def multiply(self, fields: Mapping[str, Any], d: Any, a: Any, b: Any, c: Any) -> None:
        """`cute.gemm` by this instruction: D = A B + C on one thread's fragments."""
        multiply_each(self, d, a, b, c)

    def issue(self, d: Any, a: Any, b: Any, c: Any) -> None:
        """Emit one instruction on fragments of its values."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Plan:
    """What of an atom or a tiled MMA never changes: one static leaf."""

    op: MmaOp
    atom: MmaAtomLayout
    tiling: MmaTiling | None = None

    __dsl_leaf__ = True


class MmaAtom:
    """One matrix instruction of an operation, with the fields that can be set at run time.

    Fields are state: what `set` in a loop or branch leaves behind is carried out of it.
    """

    def __init__(self, op: MmaOp) -> None:
        self._plan = _Plan(op, op.layout())
        self._fields = dict(op.fields)

    @property
    def op(self) -> MmaOp:
        return self._plan.op

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return self._plan.atom.shape_mnk

    @property
    def thr_id(self) -> Any:
        return self._plan.atom.thr_id

    @property
    def tv_layout_A(self) -> Any:
        return self._plan.atom.tv_layout_A

    @property
    def tv_layout_B(self) -> Any:
        return self._plan.atom.tv_layout_B

    @property
    def tv_layout_C(self) -> Any:
        return self._plan.atom.tv_layout_C

    @takes_location
    def set(self, field: Any, value: Any) -> None:
        """Give a field a value; the gemms after it use it."""
        name = self._field(field)
        self.op.check_field(name, value)
        self._fields[name] = value

    @takes_location
    def get(self, field: Any) -> Any:
        """The value of a field."""
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
        """`cute.gemm(self, d, a, b, c)`."""
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
    """The atom of an operation."""
    return MmaAtom(_operation(op, "make_mma_atom"))


def _operation(op: Any, what: str) -> MmaOp:
    if not isinstance(op, MmaOp):
        raise DSLTypeError(
            f"{what} takes an MMA operation, got {op!r}",
            hint="make one, for example nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))",
        )
    return op


class TiledMma(MmaAtom):
    """An atom repeated over threads and over the tile; see `algebra.MmaTiling`."""

    def __init__(self, op: MmaOp, atom_layout_mnk: Any, permutation_mnk: Any) -> None:
        super().__init__(op)
        atom = self._plan.atom
        tiling = algebra.make_mma_tiling(atom, atom_layout_mnk, permutation_mnk)
        self._plan = _Plan(op, atom, tiling)

    @property
    def tiling(self) -> MmaTiling:
        """Who holds what of the tile, without the instruction."""
        assert self._plan.tiling is not None
        return self._plan.tiling

    @property
    def tv_layout_A_tiled(self) -> Any:
        return self.tiling.tv_layout_A_tiled

    @property
    def tv_layout_B_tiled(self) -> Any:
        return self.tiling.tv_layout_B_tiled

    @property
    def tv_layout_C_tiled(self) -> Any:
        return self.tiling.tv_layout_C_tiled

    @property
    def thr_layout_vmnk(self) -> Any:
        return self.tiling.thr_layout_vmnk

    @property
    def permutation_mnk(self) -> Any:
        return self.tiling.permutation_mnk

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(self.tiling.size)

    def get_tile_size(self, mode: int) -> int:
        """The extent of the tile in M, N or K (0, 1, 2)."""
        return int(self.tiling.tile_shape_mnk[mode])

    @takes_location
    def get_slice(self, thr_idx: Any) -> ThrMma:
        """The part of thread `thr_idx`. For operands that wgmma reads from shared memory any thread
        of the warpgroup will do.
        """
        return ThrMma(self, as_thread(thr_idx, self.size))

    @takes_location
    def partition_shape_A(self, shape_mk: Any) -> Any:
        """The shape of one thread's part of A."""
        return self.tiling.partition_shape("A", shape_mk)

    @takes_location
    def partition_shape_B(self, shape_nk: Any) -> Any:
        """The shape of one thread's part of B."""
        return self.tiling.partition_shape("B", shape_nk)

    @takes_location
    def partition_shape_C(self, shape_mn: Any) -> Any:
        """The shape of one thread's part of C."""
        return self.tiling.partition_shape("C", shape_mn)

    @takes_location
    def make_fragment_A(self, a: Any) -> Any:
        """A partitioned A (a tensor, or a shape) as the instruction takes it: registers, or
        descriptors of the shared memory that wgmma reads.
        """
        return self.op.make_fragment("A", a)

    @takes_location
    def make_fragment_B(self, b: Any) -> Any:
        """A partitioned B (a tensor, or a shape) as the instruction takes it; as A."""
        return self.op.make_fragment("B", b)

    @takes_location
    def make_fragment_C(self, c: Any) -> Tensor:
        """Registers for a partitioned accumulator (a tensor, or a shape)."""
        made: Tensor = self.op.make_fragment("C", c)
        return made

    def __getattr__(self, name: str) -> Any:
        if name in ("partition_A", "partition_B", "partition_C"):
            raise of_a_thread(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _repr_svg_(self) -> str | None:
        return notebook_svg(self.tiling)


@dataclass(frozen=True)
class ThrMma:
    """What one thread of a tiled MMA holds."""

    tiled_mma: TiledMma
    thr_idx: Any

    @takes_location
    def partition_A(self, a: Tensor) -> Tensor:
        """This thread's part of A (M, K, ...): (values, MMA_M, MMA_K, ...)."""
        return self._part("A", a)

    @takes_location
    def partition_B(self, b: Tensor) -> Tensor:
        """This thread's part of B (N, K, ...): (values, MMA_N, MMA_K, ...)."""
        return self._part("B", b)

    @takes_location
    def partition_C(self, c: Tensor) -> Tensor:
        """This thread's part of C (M, N, ...): (values, MMA_M, MMA_N, ...)."""
        return self._part("C", c)

    def _part(self, operand: str, x: Tensor) -> Tensor:
        check_partitioned(x, f"partition_{operand}")
        mma = self.tiled_mma
        if operand != "C":
            tile = (mma.get_tile_size("AB".index(operand)), mma.get_tile_size(2))
            mma.op.check_whole(operand, x, tile)
        return mma.tiling.partition(operand, x, self.thr_idx)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("make_fragment_", "partition_shape_")):
            return getattr(self.tiled_mma, name)
        raise AttributeError(name)


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
    """The instruction repeated over groups of threads (`atom_layout_mnk`, a shape or layout) and,
    by `permutation_mnk`, over a larger or reordered tile.
    """
    op = op_or_atom.op if isinstance(op_or_atom, MmaAtom) else op_or_atom
    return TiledMma(_operation(op, "make_tiled_mma"), atom_layout_mnk, permutation_mnk)


# Multiplying -------------------------------------------------------------------------------------


@takes_location
def gemm(mma: Any, d: Tensor, a: Any, b: Any, c: Tensor) -> None:
    """d = a * b + c on one thread's fragments; d and c may be the same.

    (V) x (V) -> (V), (V, M) x (V, N) -> (V, M, N), or (V, M, K) x (V, N, K) -> (V, M, N).
    """
    if not isinstance(mma, MmaAtom):
        raise DSLTypeError(f"gemm takes a tiled MMA or an MMA atom, got {type(mma).__name__}")
    mma.gemm(d, a, b, c)


@takes_location
def mma_atom_call(atom: Any, d: Tensor, a: Any, b: Any, c: Tensor) -> None:
    """Exactly one instruction, on fragments of its values."""
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
    """One instruction for each position in M, N and K of fragments in registers."""
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
    rows, columns = _parts(a, ms, ka), _parts(b, ns, ka)
    results, added = _parts(d, ms, ns), _parts(c, ms, ns)
    for k in range(ka):
        for m in range(ms):
            for n in range(ns):
                at = m + ms * n
                first = added[at] if k == 0 else results[at]
                op.issue(results[at], rows[m + ms * k], columns[n + ns * k], first)


def _multiply_columns(
    op: MmaOp, d: Tensor, a: Tensor, b: Tensor, c: Tensor, ns: int, ks: int
) -> None:
    """All rows of A with one element of B at a time, down and up again: an instruction then shares
    a factor with the one before it, which is not read from the registers again.
    """
    columns, elements = _parts(a, 1, ks), _parts(b, ns, ks)
    results, added = _parts(d, 1, ns), _parts(c, 1, ns)
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
                f"{op}: {name} has elements of {tensor.element_type.__name__}, not {dtype.__name__}"
            )


def _check_values(op: MmaOp, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    layout = op.layout()
    for name, tensor, operand in zip("dabc", (d, a, b, c), "CABC", strict=True):
        wanted = algebra.size(getattr(layout, f"tv_layout_{operand}").shape, [1])
        values = algebra.size(tensor.shape, [0])
        if values != wanted:
            raise DSLTypeError(
                f"{op}: {name}, of shape {tensor.shape}, has {values} values for each instruction, "
                f"which takes {wanted} of {operand}",
                hint=f"make it with make_fragment_{operand}, of what partition_{operand} gives",
            )


def extents(x: Any) -> tuple[int, int]:
    """Extents of the modes after the values: missing ones are 1."""
    rank = algebra.rank(x.layout)
    if rank > 3:
        raise DSLTypeError(
            f"gemm: the fragment {x} has more than three modes",
            hint="choose a stage or tile: fragment[None, None, None, stage]",
        )
    sizes = [int(algebra.size(x.shape, [i])) for i in range(1, rank)]
    return (*sizes, 1, 1)[0], (*sizes, 1, 1)[1]


def _parts(x: Tensor, first: int, second: int) -> list[Tensor]:
    """The values of each instruction, the first mode after them fastest."""
    count = first * second
    values = int(algebra.size(x.shape)) // count
    layout = x.layout
    piece = algebra.coalesce(algebra.composition(layout, algebra.Layout(values, 1)))
    return [x._at(layout(i * values), piece) for i in range(count)]
