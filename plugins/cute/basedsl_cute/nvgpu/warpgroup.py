"""`nvgpu.warpgroup`: matrix instructions of four warps (wgmma, sm_90a).

PTX ISA 9.7.15, "Asynchronous Warpgroup Level Matrix Instructions". They read A and B from shared
memory through descriptors (A from registers too), keep the accumulator in registers, and complete
when their group has been waited for:

    warpgroup.fence()
    cute.gemm(tiled_mma, acc, tCrA[None, None, None, stage], tCrB[None, None, None, stage], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.metastage import require
from basedsl.numeric import Boolean, Float32, as_numeric, is_dynamic
from basedsl_cute import algebra
from basedsl_cute.arch.wgmma import wgmma_commit_group as commit_group
from basedsl_cute.arch.wgmma import wgmma_fence as fence
from basedsl_cute.arch.wgmma import wgmma_wait_group as wait_group
from basedsl_cute.dialect.warpgroup import WGMMA_TYPES
from basedsl_cute.memory import make_rmem_tensor
from basedsl_cute.nvgpu.matrix_descriptor import DescriptorTensor, descriptors
from basedsl_cute.tensor import Tensor

__all__ = [
    "Field",
    "MmaF16BF16Op",
    "OperandMajorMode",
    "OperandSource",
    "SmemLayoutAtomKind",
    "WarpgroupMma",
    "commit_group",
    "fence",
    "make_smem_layout_atom",
    "wait_group",
]


class OperandMajorMode(enum.StrEnum):
    """Which mode of an operand is contiguous."""

    K = "k"
    MN = "mn"


class OperandSource(enum.StrEnum):
    """Where an operand is read from."""

    SMEM = "smem"
    RMEM = "rmem"


class Field(enum.StrEnum):
    """What can be set on a tiled MMA at run time."""

    ACCUMULATE = "accumulate"


class SmemLayoutAtomKind(enum.StrEnum):
    """The canonical layouts of operands in shared memory: major mode and width of the swizzle."""

    K_SW128 = "K_SW128"
    K_SW64 = "K_SW64"
    K_SW32 = "K_SW32"
    K_INTER = "K_INTER"
    MN_SW128 = "MN_SW128"
    MN_SW64 = "MN_SW64"
    MN_SW32 = "MN_SW32"
    MN_INTER = "MN_INTER"


def make_smem_layout_atom(kind: Any, dtype: Any) -> Any:
    """The canonical layout `kind` in elements of `dtype`, to be tiled by `tile_to_shape`."""
    return algebra.gmma_smem_atom(str(SmemLayoutAtomKind(kind)), dtype.width)


_TYPE_NAMES = {
    "Float16": "f16",
    "BFloat16": "bf16",
    "TFloat32": "tf32",
    "Float8E4M3FN": "f8E4M3FN",
    "Float8E5M2": "f8E5M2",
    "Int8": "i8",
    "Uint8": "ui8",
}


@dataclass(frozen=True)
class MmaF16BF16Op:
    """wgmma on half-precision operands with float32 accumulators; `shape_mnk` is (64, N, 16)."""

    ab_dtype: Any
    acc_dtype: Any
    shape_mnk: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    def __post_init__(self) -> None:
        name = self.ab_dtype.__name__
        if name not in ("Float16", "BFloat16"):
            raise DSLTypeError(f"MmaF16BF16Op takes Float16 or BFloat16 operands, not {name}")
        if self.acc_dtype is not Float32:
            raise DSLTypeError(f"MmaF16BF16Op accumulates Float32, not {self.acc_dtype.__name__}")
        m, n, k = self.shape_mnk
        if m != 64 or k != 16 or n % 8 or not 8 <= n <= 256:
            raise DSLTypeError(
                f"no wgmma of shape {self.shape_mnk}: (64, N, 16) with N from 8 to 256, by 8"
            )
        if self.a_src is OperandSource.RMEM and self.a_major_mode is not OperandMajorMode.K:
            raise DSLTypeError("A in registers is K-major")

    @property
    def type_names(self) -> tuple[str, str]:
        """A's and B's element types as the `cute.wgmma` op names them."""
        name = _TYPE_NAMES[self.ab_dtype.__name__]
        return name, name

    def make_tiled_mma(self, atom_layout_mnk: Any, permutation_mnk: Any) -> WarpgroupMma:
        """What `cute.make_tiled_mma` gives for this operation."""
        return WarpgroupMma(self, atom_layout_mnk, permutation_mnk)


class _Plan:
    """What of a tiled MMA never changes: one static leaf."""

    __dsl_leaf__ = True

    def __init__(self, op: Any, tiling: Any) -> None:
        self.op = op
        self.tiling = tiling


class WarpgroupMma:
    """A wgmma tiled over warpgroups, with its run-time field ACCUMULATE."""

    def __init__(self, op: Any, atom_layout_mnk: Any = (1, 1, 1), permutation: Any = None) -> None:
        _, n, k = op.shape_mnk
        atom = algebra.warpgroup_mma(n, k, op.a_src is OperandSource.RMEM)
        self._plan = _Plan(op, algebra.make_mma_tiling(atom, atom_layout_mnk, permutation))
        self.accumulate: Any = True

    @property
    def op(self) -> Any:
        return self._plan.op

    @property
    def tiling(self) -> Any:
        return self._plan.tiling

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        shape: tuple[int, int, int] = self.op.shape_mnk
        return shape

    @property
    def size(self) -> Any:
        return self.tiling.size

    def set(self, field: Field, value: Any) -> None:
        """Set ACCUMULATE: false makes the next gemm replace the accumulator."""
        if field != Field.ACCUMULATE:
            raise DSLTypeError(f"a wgmma has no field {field!r}")
        self.accumulate = value

    def get(self, field: Field) -> Any:
        """The value of a field."""
        if field != Field.ACCUMULATE:
            raise DSLTypeError(f"a wgmma has no field {field!r}")
        return self.accumulate

    def get_slice(self, thr_idx: Any) -> WarpgroupSlice:
        """One thread's part; for operands in shared memory any thread of the warpgroup will do."""
        return WarpgroupSlice(self, thr_idx)

    def partition_shape_C(self, shape_mn: Any) -> Any:
        """The shape of one thread's part of an accumulator tile."""
        return self.tiling.partition_shape("C", shape_mn)

    def make_fragment_A(self, tensor: Tensor) -> Any:
        """A as the instruction takes it: descriptors of shared memory, or registers."""
        if self.op.a_src is OperandSource.RMEM:
            return make_rmem_tensor(tensor.shape, self.op.ab_dtype)
        return descriptors(tensor, self.op.a_major_mode is OperandMajorMode.K)

    def make_fragment_B(self, tensor: Tensor) -> DescriptorTensor:
        """B as the instruction takes it: descriptors of shared memory."""
        return descriptors(tensor, self.op.b_major_mode is OperandMajorMode.K)

    def make_fragment_C(self, shape: Any) -> Tensor:
        """The accumulator of a partitioned shape, in registers."""
        return make_rmem_tensor(algebra.shape(shape), self.op.acc_dtype)

    def gemm(self, d: Tensor, a: Any, b: DescriptorTensor, c: Tensor) -> None:
        """d = a * b + c, issued; d and c must be the same registers.

        (V, M, K) x (V, N, K) -> (V, M, N); operands of lower rank have extents of 1. Without
        ACCUMULATE what was in d is replaced by the first step of K, the others add.
        """
        if c is not d and c.pointer.address.ir_value() != d.pointer.address.ir_value():
            raise DSLTypeError("wgmma accumulates in place: pass the same tensor as d and c")
        a_layout, b_layout, d_layout = (_three_modes(x.layout) for x in (a, b, d))
        ms, ks = algebra.size(a_layout.shape, 1), algebra.size(a_layout.shape, 2)
        ns = algebra.size(b_layout.shape, 1)
        if algebra.size(b_layout.shape, 2) != ks or algebra.size(d_layout.shape, 1) != ms:
            raise DSLTypeError(f"the shapes {a.shape} x {b.shape} -> {d.shape} do not agree")
        for m in range(ms):
            for n in range(ns):
                self._emit(
                    _at(d, d_layout((0, m, n))),
                    _start(a, a_layout((0, m, 0))),
                    b.start + b_layout((0, n, 0)),
                    [a_layout((0, m, k)) - a_layout((0, m, 0)) for k in range(ks)],
                    [b_layout((0, n, k)) - b_layout((0, n, 0)) for k in range(ks)],
                )

    def _emit(self, acc: Any, a: Any, b: Any, a_steps: list[int], b_steps: list[int]) -> None:
        trace = require("a wgmma")
        ir = trace.ir
        text = ir.StringAttr.get
        a_type, b_type = self.op.type_names
        i64 = ir.IntegerType.get_signless(64)
        attributes = {
            "n": ir.IntegerAttr.get(i64, self.shape_mnk[1]),
            "a_type": text(a_type),
            "b_type": text(b_type),
            "a_major": text(str(self.op.a_major_mode)),
            "b_major": text(str(self.op.b_major_mode)),
            "a_steps": ir.DenseI64ArrayAttr.get(a_steps),
            "b_steps": ir.DenseI64ArrayAttr.get(b_steps),
        }
        assert WGMMA_TYPES[a_type][0] == self.shape_mnk[2]
        operands = [acc, a, b.ir_value()]
        flag = self.accumulate
        if is_dynamic(flag) or not bool(flag):
            operands.append(as_numeric(flag).to(Boolean).ir_value())
        trace.emit(ir.Operation.create, "cute.wgmma", operands=operands, attributes=attributes)


class WarpgroupSlice:
    """What one thread, or one warpgroup, holds of the tiles of a `WarpgroupMma`."""

    def __init__(self, tiled: WarpgroupMma, thr_idx: Any) -> None:
        self.tiled = tiled
        self.thr_idx = thr_idx

    def partition_A(self, tensor: Any) -> Any:
        """((64, K), MMA_M, MMA_K, ...) of an operand, seen whole by every thread."""
        return self.tiled.tiling.partition("A", tensor, self.thr_idx)

    def partition_B(self, tensor: Any) -> Any:
        """((N, K), MMA_N, MMA_K, ...) of an operand, seen whole by every thread."""
        return self.tiled.tiling.partition("B", tensor, self.thr_idx)

    def partition_C(self, tensor: Any) -> Any:
        """(values, MMA_M, MMA_N, ...): this thread's part."""
        return self.tiled.tiling.partition("C", tensor, self.thr_idx)


def _three_modes(layout: Any) -> Any:
    """(V, M, K) from a layout of rank 1 to 3."""
    missing = 3 - len(layout.shape)
    return algebra.Layout((*layout.shape, *(1,) * missing), (*layout.stride, *(0,) * missing))


def _at(tensor: Tensor, offset: int) -> Any:
    return tensor.pointer.moved(offset).address.ir_value()


def _start(a: Any, offset: int) -> Any:
    if isinstance(a, DescriptorTensor):
        return (a.start + offset).ir_value()
    return _at(a, offset)
