"""MMA atoms, tiled MMAs and `cute.gemm`: one matrix instruction, repeated over threads and tiles.

How an instruction is issued belongs to its operation (`nvgpu`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute import algebra
from basedsl_cute.algebra import MmaAtomLayout, MmaTiling
from basedsl_cute.memory import make_rmem_tensor
from basedsl_cute.tensor import Tensor, as_coordinate


class MmaOp:
    """What configures a matrix instruction. Subclasses are frozen dataclasses."""

    __dsl_leaf__ = True

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        raise NotImplementedError

    def layout(self) -> MmaAtomLayout:
        """The shape, threads and values of the instruction."""
        raise NotImplementedError

    def issue(self, d: Any, a: Any, b: Any, c: Any) -> None:
        """Emit one instruction on fragments of its values."""
        raise NotImplementedError


@dataclass(frozen=True)
class MmaAtom:
    """One matrix instruction of an operation. Everything is static."""

    op: MmaOp

    __dsl_leaf__ = True

    @cached_property
    def tv(self) -> MmaAtomLayout:
        """The layouts of the instruction's threads and values."""
        return self.op.layout()

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return self.tv.shape_mnk

    @property
    def thr_id(self) -> Any:
        return self.tv.thr_id

    @property
    def tv_layout_A(self) -> Any:
        return self.tv.tv_layout_A

    @property
    def tv_layout_B(self) -> Any:
        return self.tv.tv_layout_B

    @property
    def tv_layout_C(self) -> Any:
        return self.tv.tv_layout_C


def make_mma_atom(op: MmaOp, *, loc: Any = None, ip: Any = None) -> MmaAtom:
    """The atom of an operation."""
    if not isinstance(op, MmaOp):
        raise DSLTypeError(f"make_mma_atom takes an MMA operation, got {op!r}")
    return MmaAtom(op)


@dataclass(frozen=True)
class TiledMma:
    """An atom repeated over threads and over the tile; see `algebra.MmaTiling`."""

    atom: MmaAtom
    tiling: MmaTiling

    __dsl_leaf__ = True

    @property
    def op(self) -> MmaOp:
        return self.atom.op

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return self.atom.shape_mnk

    @property
    def thr_id(self) -> Any:
        return self.atom.thr_id

    @property
    def tv_layout_A(self) -> Any:
        return self.atom.tv_layout_A

    @property
    def tv_layout_B(self) -> Any:
        return self.atom.tv_layout_B

    @property
    def tv_layout_C(self) -> Any:
        return self.atom.tv_layout_C

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

    def get_slice(self, thr_idx: Any, *, loc: Any = None, ip: Any = None) -> ThrMma:
        """The part of thread `thr_idx`."""
        return ThrMma(self, as_coordinate(thr_idx))

    def partition_shape_A(self, shape_mk: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """The shape of one thread's part of A."""
        return self.tiling.partition_shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """The shape of one thread's part of B."""
        return self.tiling.partition_shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """The shape of one thread's part of C."""
        return self.tiling.partition_shape("C", shape_mn)

    def make_fragment_A(self, a: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
        """Registers for a partitioned A (a tensor, or a shape)."""
        return _fragment(a, self.op.dtypes[1])

    def make_fragment_B(self, b: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
        """Registers for a partitioned B (a tensor, or a shape)."""
        return _fragment(b, self.op.dtypes[2])

    def make_fragment_C(self, c: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
        """Registers for a partitioned accumulator (a tensor, or a shape)."""
        return _fragment(c, self.op.dtypes[0])

    def set(self, field: Any, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        raise DSLTypeError(f"{type(self.op).__name__} has no field {field!r} to set at run time")

    def get(self, field: Any, *, loc: Any = None, ip: Any = None) -> Any:
        raise DSLTypeError(f"{type(self.op).__name__} has no field {field!r}")

    def _repr_svg_(self) -> str | None:
        return self.tiling._repr_svg_()


@dataclass(frozen=True)
class ThrMma:
    """What one thread of a tiled MMA holds."""

    tiled_mma: TiledMma
    thr_idx: Any

    def partition_A(self, a: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor:
        """This thread's part of A (M, K, ...): (values, MMA_M, MMA_K, ...)."""
        return self.tiled_mma.tiling.partition("A", a, self.thr_idx)  # type: ignore[no-any-return]

    def partition_B(self, b: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor:
        """This thread's part of B (N, K, ...): (values, MMA_N, MMA_K, ...)."""
        return self.tiled_mma.tiling.partition("B", b, self.thr_idx)  # type: ignore[no-any-return]

    def partition_C(self, c: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor:
        """This thread's part of C (M, N, ...): (values, MMA_M, MMA_N, ...)."""
        return self.tiled_mma.tiling.partition("C", c, self.thr_idx)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("make_fragment_", "partition_shape_")):
            return getattr(self.tiled_mma, name)
        raise AttributeError(name)


def _fragment(x: Any, dtype: Any) -> Tensor:
    if isinstance(x, Tensor):
        layout = x.layout
        while isinstance(layout, algebra.ComposedLayout):
            layout = layout.outer
        return make_rmem_tensor(algebra.make_fragment_like(layout), dtype)
    return make_rmem_tensor(x, dtype)


def make_tiled_mma(
    op_or_atom: Any,
    atom_layout_mnk: Any = (1, 1, 1),
    permutation_mnk: Any = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The instruction repeated over groups of threads (`atom_layout_mnk`, a shape or layout) and,
    by `permutation_mnk`, over a larger or reordered tile.
    """
    op = op_or_atom.op if isinstance(op_or_atom, MmaAtom) else op_or_atom
    if hasattr(op, "make_tiled_mma"):  # an operation with run-time fields brings its own class
        return op.make_tiled_mma(atom_layout_mnk, permutation_mnk)
    atom = op_or_atom if isinstance(op_or_atom, MmaAtom) else make_mma_atom(op)
    return TiledMma(atom, algebra.make_mma_tiling(atom.tv, atom_layout_mnk, permutation_mnk))


# Multiplying -------------------------------------------------------------------------------------


def gemm(
    mma: Any, d: Tensor, a: Any, b: Any, c: Tensor, *, loc: Any = None, ip: Any = None
) -> None:
    """d = a * b + c on one thread's fragments; d and c may be the same.

    (V) x (V) -> (V), (V, M) x (V, N) -> (V, M, N), or (V, M, K) x (V, N, K) -> (V, M, N).
    """
    if hasattr(mma, "gemm"):  # one with run-time fields
        mma.gemm(d, a, b, c)
        return
    op = getattr(mma, "op", None)
    if not isinstance(op, MmaOp):
        raise DSLTypeError(f"gemm takes a tiled MMA or an MMA atom, got {type(mma).__name__}")
    _check_types(op, d, a, b, c)
    ms, ka = _extents(a)
    ns, kb = _extents(b)
    md, nd = _extents(d)
    if ka != kb or (ms, ns) != (md, nd) or _extents(c) != (md, nd):
        raise DSLTypeError(
            f"gemm of {a.shape} and {b.shape} into {d.shape} (adding {c.shape}): they do not agree",
            hint="(V, M, K) x (V, N, K) -> (V, M, N), with the fragments' rest modes",
        )
    rows, columns = _parts(a, ms, ka), _parts(b, ns, ka)
    results, added = _parts(d, ms, ns), _parts(c, ms, ns)
    for k in range(ka):
        for m in range(ms):
            for n in range(ns):
                at = m + ms * n
                first = added[at] if k == 0 else results[at]
                op.issue(results[at], rows[m + ms * k], columns[n + ns * k], first)


def mma_atom_call(
    atom: Any, d: Tensor, a: Tensor, b: Tensor, c: Tensor, *, loc: Any = None, ip: Any = None
) -> None:
    """Exactly one instruction, on fragments of its values."""
    op = getattr(atom, "op", None)
    if not isinstance(op, MmaOp):
        raise DSLTypeError(f"mma_atom_call takes an MMA atom, got {type(atom).__name__}")
    _check_types(op, d, a, b, c)
    op.issue(d, a, b, c)


def _check_types(op: MmaOp, *tensors: Any) -> None:
    for name, tensor, dtype in zip("dabc", tensors, op.dtypes, strict=True):
        if not isinstance(tensor, Tensor) or not algebra.is_static(tensor.shape):
            raise DSLTypeError(f"gemm: {name} is {tensor}, not a fragment of static shape")
        if tensor.element_type is not dtype:
            raise DSLTypeError(
                f"{op}: {name} has elements of {tensor.element_type.__name__}, not {dtype.__name__}"
            )


def _extents(x: Tensor) -> tuple[int, int]:
    """Extents of the modes after the values: missing ones are 1."""
    rank = algebra.rank(x.layout)
    if rank > 3:
        raise DSLTypeError(f"gemm: the fragment {x} has more than three modes")
    sizes = [int(algebra.size(x.shape, [i])) for i in range(1, rank)]
    return (*sizes, 1, 1)[0], (*sizes, 1, 1)[1]


def _parts(x: Tensor, first: int, second: int) -> list[Tensor]:
    """The values of each instruction, the first mode after them fastest."""
    count = first * second
    values = int(algebra.size(x.shape)) // count
    layout = x.layout
    piece = algebra.coalesce(algebra.composition(layout, algebra.Layout(values, 1)))
    return [x._at(layout(i * values), piece) for i in range(count)]
