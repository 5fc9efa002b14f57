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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from basedsl import (
    BFloat16,
    Boolean,
    DSLTypeError,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int8,
    Int32,
    Numeric,
    TFloat32,
    Uint8,
    as_numeric,
    current_trace,
    is_dynamic,
)
from basedsl_cute import algebra
from basedsl_cute.algebra import MmaAtomLayout
from basedsl_cute.arch.wgmma import wgmma_commit_group as commit_group
from basedsl_cute.arch.wgmma import wgmma_fence as fence
from basedsl_cute.arch.wgmma import wgmma_wait_group as wait_group
from basedsl_cute.atoms.mma import MmaOp, disagree, extents
from basedsl_cute.dialect import define
from basedsl_cute.dialect.warpgroup import WGMMA_TYPES, Wgmma, refused_width
from basedsl_cute.nvgpu.matrix_descriptor import DescriptorTensor, descriptors
from basedsl_cute.nvgpu.operand_modes import (
    Field,
    OperandMajorMode,
    OperandSource,
    SmemLayoutAtomKind,
    make_smem_layout_atom,
)
from basedsl_cute.tensors.tensor import Tensor

__all__ = [
    "Field",
    "MmaF8Op",
    "MmaF16BF16Op",
    "MmaI8Op",
    "MmaTF32Op",
    "OperandMajorMode",
    "OperandSource",
    "SmemLayoutAtomKind",
    "commit_group",
    "fence",
    "make_smem_layout_atom",
    "wait_group",
]


# How `cute.wgmma` names element types.
_TYPE_NAMES = {
    Float16: "f16", BFloat16: "bf16", TFloat32: "tf32", Float8E4M3FN: "f8E4M3FN",
    Float8E5M2: "f8E5M2", Int8: "i8", Uint8: "ui8", Float32: "f32", Int32: "i32",
}  # fmt: skip
_TYPES_NAMED = {name: dtype for dtype, name in _TYPE_NAMES.items()}


class _WarpgroupMma(MmaOp):
    """The base of wgmma: D = A B + D, where D is registers, B shared memory and A either.

    - `a_dtype`, `b_dtype`, `acc_dtype`: the element types of A, B and D; `ab_dtype` where A and B
      have the same.
    - `shape_mnk`: the instruction's shape in elements. M is 64, and K has 256 bits.
    - `a_src`: the memory of A, `OperandSource.SMEM` or `.RMEM`.
    - `a_major_mode`, `b_major_mode`: the mode that is contiguous, `OperandMajorMode.K` or `.MN`.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    def __post_init__(self) -> None:
        _check_operand_types(self)

    @property
    def fields(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The fields that `mma.set` takes: ACCUMULATE, and for floats NEGATE_A and NEGATE_B."""
        if self.acc_dtype is Int32:
            return {"accumulate": True}
        return {"accumulate": True, "negate_a": False, "negate_b": False}

    def check_field(self, name: str, value: Any) -> None:
        if name != "accumulate" and type(value) is not bool:
            raise DSLTypeError(
                f"Field.{name.upper()} is True or False when the kernel is compiled, not {value}",
                hint="it is part of the instruction; negate the other operand's values instead",
            )

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        return self.acc_dtype, self.a_dtype, self.b_dtype, self.acc_dtype

    def layout(self) -> MmaAtomLayout:
        _, n, k = self.shape_mnk
        return algebra.warpgroup_mma(n, k, self.a_src is OperandSource.RMEM)

    def check_whole(self, operand: str, x: Any, tile: tuple[int, int]) -> None:
        if not isinstance(x, Tensor) or x.memspace != "smem" or algebra.rank(x.layout) < 2:
            return
        extents = tuple(algebra.size(x.shape, [i]) for i in (0, 1))
        if any(type(n) is int and n % each for n, each in zip(extents, tile, strict=True)):
            modes = "MK" if operand == "A" else "NK"
            raise DSLTypeError(
                f"{type(self).__name__} takes {operand} in steps of {tile}, and {extents} is no "
                "multiple",
                notes=(
                    (f"the extents are ({modes[0]}, {modes[1]}) of a tile of shared memory", None),
                    ("the last step would multiply the elements behind the tile", None),
                ),
                hint="make the tile a multiple in each mode, or the tiled MMA smaller",
            )

    def make_fragment(self, operand: str, x: Any) -> Any:
        if operand == "C" or (operand == "A" and self.a_src is OperandSource.RMEM):
            return super().make_fragment(operand, x)
        dtype, major = {
            "A": (self.a_dtype, self.a_major_mode),
            "B": (self.b_dtype, self.b_major_mode),
        }[operand]
        if not isinstance(x, Tensor):
            raise DSLTypeError(
                f"wgmma reads {operand} from shared memory: a fragment is made of it, not of {x}",
                hint=f"mma.make_fragment_{operand}(thr_mma.partition_{operand}(smem_tensor))",
            )
        if x.element_type is not dtype:
            raise DSLTypeError(
                f"{operand} has elements of {x.element_type.__name__}, not {dtype.__name__}",
                notes=((f"the operation is {self}", None),),
            )
        return descriptors(x, major is OperandMajorMode.K)

    def multiply(self, fields: Mapping[str, Any], d: Any, a: Any, b: Any, c: Any) -> None:
        """Issue D = A B + D, all steps of K; C must be the registers of D.

        Without ACCUMULATE the first step of K replaces the values of D; the others add.
        """
        if c is not d and c.pointer.address.ir_value() != d.pointer.address.ir_value():
            raise DSLTypeError("wgmma accumulates in place: pass the same tensor as d and c")
        self._check_operand("a", a, self.a_dtype, self.a_src is OperandSource.RMEM)
        self._check_operand("b", b, self.b_dtype, False)
        self._check_operand("d", d, self.acc_dtype, True)
        (ms, ks), (ns, kb) = extents(a), extents(b)
        if kb != ks or extents(d) != (ms, ns):
            raise disagree(d, a, b, c)
        a_layout, b_layout, d_layout = (_three_modes(x.layout) for x in (a, b, d))
        for m in range(ms):
            for n in range(ns):
                self._emit(
                    fields,
                    _at(d, d_layout((0, m, n))),
                    _start(a, a_layout((0, m, 0))),
                    b.start + b_layout((0, n, 0)),
                    [a_layout((0, m, k)) - a_layout((0, m, 0)) for k in range(ks)],
                    [b_layout((0, n, k)) - b_layout((0, n, 0)) for k in range(ks)],
                )

    def _check_operand(self, name: str, x: Any, dtype: Any, in_registers: bool) -> None:
        if in_registers:
            is_fit = isinstance(x, Tensor) and x.memspace == "rmem"
        else:
            is_fit = isinstance(x, DescriptorTensor)
        if not is_fit:
            wanted = "registers" if in_registers else "descriptors of shared memory"
            letter = "C" if name == "d" else name.upper()
            raise DSLTypeError(
                f"{type(self).__name__} takes {name} as {wanted}",
                notes=((f"{name} is {x}", None),),
                hint=f"make it with make_fragment_{letter}",
            )
        if in_registers and x.element_type is not dtype:
            raise DSLTypeError(
                f"{name} has elements of {x.element_type.__name__}, not {dtype.__name__}",
                notes=((f"the operation is {self}", None),),
            )
        values = {"a": 32 * self.shape_mnk[2] // 64, "d": self.shape_mnk[1] // 2}.get(name, 0)
        if in_registers and not _is_compact(x.layout, values):
            raise DSLTypeError(
                f"{type(self).__name__} takes the {values} values of {name} in consecutive "
                "registers",
                notes=((f"{name} is {x}", None),),
                hint=f"make it with make_fragment_{'C' if name == 'd' else 'A'}",
            )

    def _emit(
        self,
        fields: Mapping[str, Any],
        acc: Any,
        a: Any,
        b: Any,
        a_steps: list[int],
        b_steps: list[int],
    ) -> None:
        trace = current_trace("a wgmma")
        descriptor, flag = b.ir_value(), fields["accumulate"]
        may_replace = is_dynamic(flag) or not bool(flag)
        trace.emit(
            Wgmma,
            define(trace.bindings),
            acc=acc,
            a=a,
            b=descriptor,
            accumulate=as_numeric(flag).to(Boolean).ir_value() if may_replace else None,
            n=self.shape_mnk[1],
            d_type=_TYPE_NAMES[self.acc_dtype],
            a_type=_TYPE_NAMES[self.a_dtype],
            b_type=_TYPE_NAMES[self.b_dtype],
            a_major=str(self.a_major_mode),
            b_major=str(self.b_major_mode),
            a_steps=a_steps,
            b_steps=b_steps,
            negate_a=bool(fields.get("negate_a")),
            negate_b=bool(fields.get("negate_b")),
        )


class _OneType(_WarpgroupMma):
    """The base of operations whose A and B have elements of one type."""

    ab_dtype: type[Numeric]

    @property
    def a_dtype(self) -> Any:  # type: ignore[override]
        return self.ab_dtype

    b_dtype = a_dtype


@dataclass(frozen=True)
class _TwoTypes(_WarpgroupMma):
    """The base of operations whose A and B may have elements of different types."""

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K


@dataclass(frozen=True)
class MmaF16BF16Op(_OneType):
    """The wgmma of Float16 or BFloat16, shape (64, N, 16).

    Float16 accumulates in Float32 or Float16, BFloat16 in Float32. N is a multiple of 8 up to 256.
    Operands in shared memory may be contiguous in K or in M or N; A in registers is K-major.
    Raises DSLTypeError for other arguments.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K


@dataclass(frozen=True)
class MmaTF32Op(_OneType):
    """The wgmma of TFloat32 accumulating in Float32, shape (64, N, 8), K-major.

    N is a multiple of 8 up to 256. The lowest 13 bits of the operands' float32 words are ignored.
    Raises DSLTypeError for other arguments.
    """

    shape_mnk: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    ab_dtype: type[Numeric] = TFloat32
    acc_dtype: type[Numeric] = Float32


@dataclass(frozen=True)
class MmaF8Op(_TwoTypes):
    """The wgmma of Float8E4M3FN and Float8E5M2 in any mix, shape (64, N, 32), K-major.

    It accumulates in Float32 or Float16. N is a multiple of 8 up to 256. Raises DSLTypeError for
    other arguments.
    """


@dataclass(frozen=True)
class MmaI8Op(_TwoTypes):
    """The wgmma of Int8 and Uint8 in any mix, shape (64, N, 32), K-major.

    It accumulates in Int32, which wraps around. N is 8, 24 or a multiple of 16 up to 256. Raises
    DSLTypeError for other arguments.
    """


_OPERANDS: dict[type, tuple[Any, ...]] = {
    MmaF16BF16Op: (Float16, BFloat16),
    MmaTF32Op: (TFloat32,),
    MmaF8Op: (Float8E4M3FN, Float8E5M2),
    MmaI8Op: (Int8, Uint8),
}


def _check_operand_types(op: _WarpgroupMma) -> None:
    """DSLTypeError, with the choices there are, unless the hardware has this instruction."""
    name, choices = type(op).__name__, _OPERANDS[type(op)]
    for dtype in (op.a_dtype, op.b_dtype):
        if dtype not in choices:
            raise DSLTypeError(
                f"{name} takes operands of {_names(choices)}, not {_name(dtype)}",
                hint=_other_operation(dtype),
            )
    what = WGMMA_TYPES[_TYPE_NAMES[op.a_dtype]]
    if _TYPE_NAMES.get(op.acc_dtype) not in what.accumulators:
        known = _names(_TYPES_NAMED[x] for x in what.accumulators)
        raise DSLTypeError(
            f"{name} of {_name(op.a_dtype)} accumulates in {known}, not {_name(op.acc_dtype)}"
        )
    shape = op.shape_mnk
    if len(shape) != 3 or (shape[0], shape[2]) != (64, what.k):
        raise DSLTypeError(f"{name} has the shapes (64, N, {what.k}), not {shape}")
    refused = refused_width(shape[1], what.is_integer)
    if refused is not None:
        raise DSLTypeError(f"{name} has no shape {shape}: {refused}")
    if op.a_src is OperandSource.RMEM and op.a_major_mode is not OperandMajorMode.K:
        raise DSLTypeError(
            f"{name}: A in registers is K-major",
            hint="whoever loads the registers can transpose: LdMatrix8x8x16bOp(transpose=True)",
        )
    for letter, major in (("A", op.a_major_mode), ("B", op.b_major_mode)):
        if major is not OperandMajorMode.K and not what.has_mn_major:
            raise DSLTypeError(
                f"{name} takes {letter} K-major only: wgmma transposes 16-bit operands, no others",
                hint=f"keep {letter} with K contiguous in shared memory",
            )


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "__name__", dtype))


def _names(dtypes: Any) -> str:
    return " or ".join(_name(dtype) for dtype in dtypes)


def _other_operation(dtype: Any) -> str | None:
    for operation, dtypes in _OPERANDS.items():
        if dtype in dtypes:
            return f"{operation.__name__} multiplies {_name(dtype)}"
    if isinstance(dtype, type) and issubclass(dtype, Numeric):
        known = ", ".join(_name(x) for dtypes in _OPERANDS.values() for x in dtypes)
        return f"wgmma multiplies {known}"
    return None


def make_mma_op(
    a_dtype: type[Numeric],
    b_dtype: type[Numeric],
    acc_dtype: type[Numeric],
    n: int,
    a_src: OperandSource = OperandSource.SMEM,
    a_major_mode: OperandMajorMode = OperandMajorMode.K,
    b_major_mode: OperandMajorMode = OperandMajorMode.K,
) -> _WarpgroupMma:
    """Return the wgmma of these element types, with N = `n`; DSLTypeError if there is none.

    Float32 operands multiply as TFloat32, if they are declared so.
    """
    where = (a_src, a_major_mode, b_major_mode)
    if a_dtype in _OPERANDS[MmaF8Op]:
        return MmaF8Op(a_dtype, b_dtype, acc_dtype, (64, n, 32), *where)
    if a_dtype in _OPERANDS[MmaI8Op]:
        return MmaI8Op(a_dtype, b_dtype, acc_dtype, (64, n, 32), *where)
    if a_dtype is not b_dtype:
        raise DSLTypeError(
            f"wgmma does not mix operands of {_name(a_dtype)} and {_name(b_dtype)}",
            hint="it mixes the two Float8 types, and Int8 with Uint8",
        )
    if a_dtype in _OPERANDS[MmaTF32Op]:
        return MmaTF32Op((64, n, 8), *where, a_dtype, acc_dtype)
    if a_dtype is Float32:
        raise DSLTypeError(
            "wgmma multiplies no Float32",
            hint="declare the operands as TFloat32 (tensor.element_type = TFloat32), which keeps "
            "11 of 24 bits of precision",
        )
    return MmaF16BF16Op(a_dtype, acc_dtype, (64, n, 16), *where)


def _is_compact(layout: Any, values: int) -> bool:
    """Return True if the first mode is `values` consecutive elements."""
    flat = algebra.coalesce(algebra.get(layout, 0))
    return bool(flat.shape == values and flat.stride == 1)


def _three_modes(layout: Any) -> Any:
    """Return a layout of rank 1 to 3 as (V, M, K)."""
    missing = 3 - len(layout.shape)
    return algebra.Layout((*layout.shape, *(1,) * missing), (*layout.stride, *(0,) * missing))


def _at(tensor: Tensor, offset: int) -> Any:
    return tensor.pointer.moved(offset).address.ir_value()


def _start(a: Any, offset: int) -> Any:
    if isinstance(a, DescriptorTensor):
        return (a.start + offset).ir_value()
    return _at(a, offset)
