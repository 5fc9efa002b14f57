"""`nvgpu.warp`: matrix instructions of a warp: mma.sync, ldmatrix, stmatrix.

PTX ISA 9.7.14.5 "mma.sync", 9.7.14.5.15 "ldmatrix", 9.7.14.5.16 "stmatrix".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from basedsl import (
    BFloat16,
    DSLTypeError,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int32,
    Numeric,
    TFloat32,
    Uint8,
    current_trace,
)
from basedsl_cute import algebra
from basedsl_cute.algebra import CopyAtomLayout, MmaAtomLayout
from basedsl_cute.atoms.copy import CopyAtom, CopyOp
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.atoms.mma import MmaOp
from basedsl_cute.atoms.operand_registers import RegisterOperand, as_pieces
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import Copy, Gemm
from basedsl_cute.hardware.requirements import MMA_SYNC
from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.nvgpu import warp_block_scaled as mma
from basedsl_cute.nvgpu.common import _no_fields
from basedsl_cute.nvgpu.warp_block_scaled import (
    Field,
    MmaMXF4NVF4Op,
    MmaMXF4Op,
    MmaMXF8F6F4Op,
    MmaMXF8Op,
    WarpBlockScaledMma,
)
from basedsl_cute.tensors.pointer import storage_bits

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)

__all__ = [
    "Field",
    "LdMatrix8x8x16bOp",
    "LdMatrix8x16x8bOp",
    "LdMatrix16x16x8bOp",
    "MmaF16BF16Op",
    "MmaF64Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaMXF4NVF4Op",
    "MmaMXF4Op",
    "MmaMXF8F6F4Op",
    "MmaMXF8Op",
    "MmaTF32Op",
    "StMatrix8x8x16bOp",
    "StMatrix16x8x8bOp",
    "WarpBlockScaledMma",
    "mma",
]

# How `dialect.atoms` names element types.
_NAMES = {
    Float16: "f16", BFloat16: "bf16", TFloat32: "tf32", Float32: "f32",
    Float64: "f64", Int8: "s8", Uint8: "u8", Int32: "s32", Float8E4M3FN: "e4m3",
    Float8E5M2: "e5m2",
}  # fmt: skip


class _WarpMma(MmaOp):
    """The base of mma.sync: D = A B + C with A row-major and B column-major in registers.

    - `ab_dtype`: the element type of A and, unless `b_dtype` is given, of B.
    - `acc_dtype`: the element type of C and D.
    - `shape_mnk`: the shape (M, N, K) of the instruction in elements.
    """

    shape_mnk: tuple[int, int, int]

    def layout(self) -> MmaAtomLayout:
        _, a, b, _ = self.dtypes
        return algebra.warp_mma(self.shape_mnk, max(a.width, b.width))

    def issue(self, d: Any, a: Any, b: Any, c: Any) -> None:
        m, n, k = self.shape_mnk
        types = "".join(_NAMES[t] for t in self.dtypes)
        emit_mma(f"mma_{m}x{n}x{k}_{types}", d, a, b, c)


@dataclass(frozen=True)
class MmaF16BF16Op(_WarpMma):
    """The mma.sync of Float16 or BFloat16, 16x8x8 or 16x8x16 (sm_80).

    Float16 accumulates in Float16 or Float32, BFloat16 in Float32. Raises DSLTypeError for other
    types and shapes.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]

    def __post_init__(self) -> None:
        known = {Float16: (Float16, Float32), BFloat16: (Float32,)}
        _check_operand_types(self, known)

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        return self.acc_dtype, self.ab_dtype, self.ab_dtype, self.acc_dtype


@dataclass(frozen=True)
class MmaTF32Op(_WarpMma):
    """The mma.sync of TFloat32 accumulating in Float32, 16x8x4 or 16x8x8 (sm_80)."""

    ab_dtype: type[Numeric] = TFloat32
    acc_dtype: type[Numeric] = Float32
    shape_mnk: tuple[int, int, int] = (16, 8, 8)

    def __post_init__(self) -> None:
        _check_operand_types(self, {TFloat32: (Float32,)})

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        return Float32, TFloat32, TFloat32, Float32


@dataclass(frozen=True)
class MmaI8Op(_WarpMma):
    """The mma.sync of Int8 or Uint8 accumulating in Int32, which wraps around, 16x8x16 or 16x8x32
    (sm_80).

    `b_dtype` is that of A unless given.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric] = Int32
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    b_dtype: type[Numeric] | None = None

    def __post_init__(self) -> None:
        _check_operand_types(self, {Int8: (Int32,), Uint8: (Int32,)})

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        return Int32, self.ab_dtype, self.b_dtype or self.ab_dtype, Int32


@dataclass(frozen=True)
class MmaFP8Op(_WarpMma):
    """The mma.sync of Float8E4M3FN or Float8E5M2 accumulating in Float32, 16x8x32 (sm_89).

    `b_dtype` is that of A unless given.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric] = Float32
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    b_dtype: type[Numeric] | None = None

    def __post_init__(self) -> None:
        _check_operand_types(self, {Float8E4M3FN: (Float32,), Float8E5M2: (Float32,)})

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        return Float32, self.ab_dtype, self.b_dtype or self.ab_dtype, Float32


@dataclass(frozen=True)
class MmaF64Op(_WarpMma):
    """The mma.sync of Float64: 8x8x4 (sm_80), or 16x8x4, 16x8x8 and 16x8x16 (sm_90)."""

    shape_mnk: tuple[int, int, int] = (8, 8, 4)
    ab_dtype: type[Numeric] = Float64
    acc_dtype: type[Numeric] = Float64

    def __post_init__(self) -> None:
        _check_operand_types(self, {Float64: (Float64,)})

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        return Float64, Float64, Float64, Float64


def _check_operand_types(op: Any, types: dict[Any, tuple[Any, ...]]) -> None:
    """DSLTypeError, with the choices there are, unless the hardware has this instruction."""
    name = type(op).__name__
    accumulators = types.get(op.ab_dtype, ())
    b_dtype = getattr(op, "b_dtype", None)
    if op.acc_dtype not in accumulators or (b_dtype is not None and b_dtype not in types):
        known = ", ".join(
            f"{t.__name__} in {a.__name__}" for t, some in types.items() for a in some
        )
        pair = " and ".join(_name(t) for t in (op.ab_dtype, b_dtype) if t is not None)
        raise DSLTypeError(
            f"{name} does not multiply {pair} in {_name(op.acc_dtype)}",
            notes=((f"it multiplies {known}", None),),
            hint=_other_operation(op.ab_dtype, name),
        )
    kind = _NAMES[op.ab_dtype]
    shapes = [tuple(map(int, shape.split("x"))) for a, shape in MMA_SYNC if a == kind]
    if tuple(op.shape_mnk) not in shapes:
        known = ", ".join(str(shape) for shape in shapes)
        raise DSLTypeError(
            f"{name} has the shapes {known}, not {op.shape_mnk}",
            hint="make_tiled_mma(op, atom_layout_mnk=..., permutation_mnk=...) makes larger tiles",
        )


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "__name__", dtype))


_OPERATION_OF = {
    Float16: "MmaF16BF16Op", BFloat16: "MmaF16BF16Op", TFloat32: "MmaTF32Op", Float64: "MmaF64Op",
    Int8: "MmaI8Op", Uint8: "MmaI8Op", Float8E4M3FN: "MmaFP8Op", Float8E5M2: "MmaFP8Op",
}  # fmt: skip


def _other_operation(dtype: Any, name: str) -> str | None:
    if dtype is Float32:
        return "declare the operands as TFloat32 for warp.MmaTF32Op, or use MmaUniversalOp(Float32)"
    other = _OPERATION_OF.get(dtype)
    return f"warp.{other} multiplies {_name(dtype)}" if other not in (None, name) else None


def emit_mma(atom: str, d: Any, a: Any, b: Any, c: Any) -> None:
    """Emit `cute.gemm` by the dialect's atom of that name, on fragments of one instruction."""
    operands = []
    for name, tensor in zip("dabc", (d, a, b, c), strict=True):
        width = storage_bits(tensor.element_type)
        bits = int(algebra.size(tensor.shape)) * width
        what = f"gemm: {name}, an operand of {atom},"
        # Read and written by registers.
        operands.append(RegisterOperand(tensor, bits, name == "d", what, align=max(32, width) // 8))
    trace = current_trace("gemm")
    with as_pieces(operands) as (d, a, b, c):
        Gemm(define(trace.bindings), d=d, a=a, b=b, c=c, atom=atom, loc=trace.loc())


# Matrices between shared memory and registers ----------------------------------------------------


@dataclass(frozen=True)
class _MatrixCopy(CopyOp):
    """The base of copies of `num_matrices` matrices (1, 2 or 4) of 8x8 16-bit elements, each
    transposed if `transpose`.
    """

    transpose: bool = False
    num_matrices: int = 1

    width_hint: ClassVar[str] = "keep 8- and 32-bit operands K-major"

    def __post_init__(self) -> None:
        _check_transpose(self)
        if self.num_matrices not in (1, 2, 4):
            raise DSLTypeError(
                f"{type(self).__name__} moves 1, 2 or 4 matrices, not {self.num_matrices}"
            )

    def check_width(self, width: int) -> None:
        """Raise DSLTypeError if elements of `width` bits would be torn apart."""
        if width > 32:
            raise DSLTypeError(
                f"{type(self).__name__} gives each lane words of 32 bits, and an element has "
                f"{width}",
                hint="copy with nvgpu.CopyUniversalOp() or cute.autovec_copy",
            )
        if self.transpose and width != 16:
            raise DSLTypeError(
                f"{type(self).__name__}(transpose=True) turns matrices of 16-bit elements, not of "
                f"{width} bits",
                hint=self.width_hint,
            )

    def _name(self, stem: str) -> str:
        return f"{stem}_x{self.num_matrices}" + ("_trans" if self.transpose else "")

    def _emit(self, name: str, src: Any, dst: Any, pred: Any, bits: tuple[int, int]) -> None:
        operands = [
            RegisterOperand(src, bits[0], False, name),
            RegisterOperand(dst, bits[1], True, name),
        ]
        trace = current_trace("a matrix copy")
        with predicated(pred), as_pieces(operands) as (source, target):
            Copy(
                define(trace.bindings),
                source=source,
                target=target,
                atom=name,
                bits=128,
                loc=trace.loc(),
            )


@dataclass(frozen=True)
class LdMatrix8x8x16bOp(_MatrixCopy):
    """The load of 1, 2 or 4 matrices of 8x8 16-bit elements from shared memory (PTX `ldmatrix`,
    sm_75).

    Each lane gives the address of a row of 16 bytes. `transpose` transposes 16-bit elements on the
    way; `num_matrices` is 1, 2 or 4. Raises DSLTypeError for other arguments.
    """

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of a warp; DSLTypeError for elements of an unfit width."""
        self.check_width(width)
        return algebra.matrix_copy(self.num_matrices, self.transpose).in_elements(width)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one ldmatrix; DSLTypeError for other memories."""
        _no_fields(self, fields)
        _check_spaces("ldmatrix", src, dst, "smem", "rmem")
        self._emit(self._name("ldmatrix"), src, dst, pred, (128, 32 * self.num_matrices))


@dataclass(frozen=True)
class LdMatrix16x16x8bOp(_MatrixCopy):
    """The load of 1 or 2 matrices of 16x16 8-bit elements, transposed (PTX `ldmatrix`, sm_100a).

    Each of 16 lanes gives the address of a row of 16 bytes for each matrix. With `unpack_bits` 4 or
    6 the row begins with 16 packed elements of so many bits, which arrive in the low bits of a byte
    each.
    """

    transpose: bool = True
    num_matrices: int = 1
    unpack_bits: int | None = None

    def __post_init__(self) -> None:
        _check_transpose(self)
        if self.num_matrices not in (1, 2):
            raise DSLTypeError(f"LdMatrix16x16x8bOp moves 1 or 2 matrices, not {self.num_matrices}")
        if not self.transpose:
            raise DSLTypeError(
                "LdMatrix16x16x8bOp always transposes",
                hint="LdMatrix8x16x8bOp loads rows of bytes as they are",
            )
        _check_unpack(self)

    def check_width(self, width: int) -> None:
        """DSLTypeError unless elements have 8 bits."""
        if width != 8:
            raise DSLTypeError(
                f"LdMatrix16x16x8bOp turns matrices of 8-bit elements, not of {width} bits",
                hint="LdMatrix8x8x16bOp(transpose=True) turns 16-bit elements",
            )

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of a warp; DSLTypeError for elements of an unfit width."""
        self.check_width(width)
        return algebra.byte_matrix_copy(self.num_matrices).in_elements(8)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one ldmatrix; DSLTypeError for other memories."""
        _no_fields(self, fields)
        _check_spaces("ldmatrix", src, dst, "smem", "rmem")
        stem = f"ldmatrix_b{self.unpack_bits or 8}" + ("t" if self.unpack_bits else "")
        name = f"{stem}_x{self.num_matrices}"
        self._emit(name, src, dst, pred, (128, 64 * self.num_matrices))


@dataclass(frozen=True)
class LdMatrix8x16x8bOp(LdMatrix8x8x16bOp):
    """The load of 1, 2 or 4 matrices of 8 rows of 16 8-bit elements (PTX `ldmatrix`, sm_75).

    It is LdMatrix8x8x16bOp for 8-bit elements. With `unpack_bits` 4 or 6 (sm_100a, sm_120a) a row
    of 16 bytes begins with 16 packed elements of so many bits, which arrive in the low bits of a
    byte each.
    """

    unpack_bits: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_unpack(self)

    def check_width(self, width: int) -> None:
        """DSLTypeError unless elements have 8 bits."""
        if width != 8:
            raise DSLTypeError(
                f"LdMatrix8x16x8bOp moves 8-bit elements, not such of {width} bits",
                hint="LdMatrix8x8x16bOp moves elements of every width",
            )
        super().check_width(width)

    def _name(self, stem: str) -> str:
        if self.unpack_bits is None:
            return super()._name(stem)
        return f"ldmatrix_b{self.unpack_bits}_x{self.num_matrices}"


def _check_transpose(op: Any) -> None:
    if not isinstance(op.transpose, bool):
        raise DSLTypeError(
            f"{type(op).__name__}: transpose is True or False, not {op.transpose!r}",
            hint=f"{type(op).__name__}(transpose=False, num_matrices={op.transpose!r})"
            if op.transpose in (2, 4)
            else None,
        )


def _check_unpack(op: Any) -> None:
    if op.unpack_bits not in (None, 4, 6):
        raise DSLTypeError(
            f"{type(op).__name__} unpacks elements of 4 or 6 bits, not of {op.unpack_bits}"
        )
    if op.unpack_bits is not None and isinstance(op, LdMatrix8x16x8bOp) and op.transpose:
        raise DSLTypeError(
            f"{type(op).__name__} does not transpose what it unpacks",
            hint="LdMatrix16x16x8bOp(unpack_bits=4) does",
        )


def _check_spaces(name: str, src: Any, dst: Any, source: str, target: str) -> None:
    if src.memspace != source or dst.memspace != target:
        raise DSLTypeError(
            f"{name} copies {source} to {target}, not {src.memspace} to {dst.memspace}"
        )


@dataclass(frozen=True)
class StMatrix16x8x8bOp(_MatrixCopy):
    """The store of 1, 2 or 4 matrices of 16x8 8-bit elements to shared memory, transposed (PTX
    `stmatrix`, sm_100a).

    Each of 8 lanes gives the address of a row of 16 bytes for each matrix: a column of the
    registers' matrix.
    """

    transpose: bool = True
    num_matrices: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.transpose:
            raise DSLTypeError("StMatrix16x8x8bOp always transposes")

    def check_width(self, width: int) -> None:
        """DSLTypeError unless elements have 8 bits."""
        if width != 8:
            raise DSLTypeError(
                f"StMatrix16x8x8bOp turns matrices of 8-bit elements, not of {width} bits",
                hint="StMatrix8x8x16bOp(transpose=True) turns 16-bit elements",
            )

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of a warp; DSLTypeError for elements of an unfit width."""
        self.check_width(width)
        return algebra.byte_matrix_copy(self.num_matrices, store=True).in_elements(8)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one stmatrix; DSLTypeError for other memories."""
        _no_fields(self, fields)
        _check_spaces("stmatrix", src, dst, "rmem", "smem")
        name = f"stmatrix_b8_x{self.num_matrices}"
        self._emit(name, src, dst, pred, (32 * self.num_matrices, 128))


@dataclass(frozen=True)
class StMatrix8x8x16bOp(_MatrixCopy):
    """The store of 1, 2 or 4 matrices of 8x8 16-bit elements to shared memory (PTX `stmatrix`,
    sm_90).

    It is the inverse of ldmatrix, with the same parameters.
    """

    width_hint: ClassVar[str] = (
        "CopyUniversalOp stores them: hopper_helpers.sm90_get_smem_store_op chooses"
    )

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        # Epilogues take an atom of any type for what a tile of C is: `make_tiled_copy_C_atom`.
        """Return the layouts of a warp."""
        transpose = self.transpose and width == 16
        return algebra.matrix_copy(self.num_matrices, transpose, store=True).in_elements(width)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one stmatrix; DSLTypeError for other memories or elements of an unfit width."""
        _no_fields(self, fields)
        self.check_width(atom.width)
        _check_spaces("stmatrix", src, dst, "rmem", "smem")
        self._emit(self._name("stmatrix"), src, dst, pred, (32 * self.num_matrices, 128))
