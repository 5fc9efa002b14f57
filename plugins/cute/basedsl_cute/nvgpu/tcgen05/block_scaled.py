"""tcgen05.mma with scale factors: D = (A SFA) (B SFB) + D, a factor for each vector of elements
along K (PTX ISA, "Block scaling").

Factors lie in tensor memory, brought there by tcgen05.cp (`cp`). `cute.gemm(mma, d, [a, sfa],
[b, sfb], d)` takes them with the operands; or the fields SFA and SFB have their addresses, for
operands of one step of K.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from basedsl import (
    DSLTypeError,
    Float4E2M1FN,
    Float8E8M0FNU,
    Float32,
    Int32,
    Numeric,
    as_numeric,
)
from basedsl_cute import algebra, arch
from basedsl_cute.atoms.mma import extents
from basedsl_cute.hardware.tensor_memory import KINDS
from basedsl_cute.nvgpu.tcgen05.mma import BlockMma
from basedsl_cute.nvgpu.tcgen05.operands import SCALE_NAMES, known_types, type_name
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor

_ADDRESS = (1 << 30) - 1  # of an address; above it is the byte within a column
_A_ID, _B_ID = 29, 4  # bits of the instruction descriptor


@dataclass(frozen=True)
class BlockScaledMma(BlockMma):
    """The base of tcgen05.mma with scale factors of type `sf_dtype`, one for `sf_vec_size`
    elements.
    """

    sf_dtype: type[Numeric] = Float8E8M0FNU
    sf_vec_size: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        name, scales = type(self).__name__, KINDS[self.kind].scales
        vectors = scales.get(SCALE_NAMES.get(self.sf_dtype, ""), ())
        if self.sf_vec_size not in vectors:
            known = known_types(
                [x for x, sizes in scales.items() if self.sf_vec_size in sizes], SCALE_NAMES
            )
            raise DSLTypeError(
                f"{name} of vectors of {self.sf_vec_size} takes factors of {known}, not "
                f"{type_name(self.sf_dtype)}"
            )

    @property
    def fields(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {**super().fields, "sfa": 0, "sfb": 0}

    def check_field(self, name: str, value: Any) -> None:
        if name in ("sfa", "sfb") and not (isinstance(value, Pointer) and value.space == "tmem"):
            raise DSLTypeError(
                f"Field.{name.upper()} is a pointer into tensor memory, not {value}",
                hint="mma.set(tcgen05.Field.SFA, tCtSFA[(None, None, k)].iterator)",
            )
        super().check_field(name, value)

    def field_value(self, name: str, value: Any) -> Any:
        return value.toint() if name in ("sfa", "sfb") else value

    def multiply(self, fields: Mapping[str, Any], d: Any, a: Any, b: Any, c: Any) -> None:
        """Issue D = (A SFA) (B SFB) + D, all steps of K; see `BlockMma.multiply`."""
        if isinstance(a, list | tuple) != isinstance(b, list | tuple):
            raise DSLTypeError("gemm takes scale factors with both operands: [a, sfa] and [b, sfb]")
        if isinstance(a, list | tuple):
            (a, sfa), (b, sfb) = a, b
            scales: list[Any] = [self._scale_tensor(x, sf, letter) for x, sf, letter in (
                (a, sfa, "A"), (b, sfb, "B"),
            )]  # fmt: skip
        else:
            if extents(a)[1] != 1 or extents(b)[1] != 1 or extents(a)[0] != 1 or extents(b)[0] != 1:
                raise DSLTypeError(
                    "Field.SFA and SFB are the factors of one instruction; a and b are more",
                    notes=((f"a has the shape {a.shape}", None), (f"b has {b.shape}", None)),
                    hint="cute.gemm(mma, d, [a, sfa], [b, sfb], d) takes factors for all",
                )
            scales = [fields["sfa"], fields["sfb"]]
            if any(type(x) is int for x in scales):
                raise DSLTypeError(
                    f"{type(self).__name__} has no scale factors yet",
                    hint="cute.gemm(mma, d, [a, sfa], [b, sfb], d), or mma.set(Field.SFA, pointer)",
                )
        super().multiply({**fields, "scales": scales}, d, a, b, c)

    def _scale_tensor(self, x: Any, scales: Any, letter: str) -> Tensor:
        if not isinstance(scales, Tensor) or scales.memspace != "tmem":
            raise DSLTypeError(f"the scale factors of {letter} are a tensor in tensor memory")
        if scales.element_type is not self.sf_dtype:
            raise DSLTypeError(
                f"{self}: the scale factors of {letter} are of {scales.element_type.__name__}, not "
                f"{self.sf_dtype.__name__}"
            )
        if extents(scales) != extents(x):
            raise DSLTypeError(
                f"the scale factors of {letter} are for {extents(scales)} instructions (MN, K), "
                f"the operand is {extents(x)}",
                notes=((f"they have the shape {scales.shape}", None),),
            )
        return scales

    def prepare(self, fields: Mapping[str, Any]) -> Any:
        scale = SCALE_NAMES[self.sf_dtype]
        number = self.instruction_descriptor(fields, scale_type=scale, is_long=self.is_long)
        return number, fields["scales"]

    def emit(
        self, d: Any, a: Any, b: Any, accumulate: Any, shared: Any, at: tuple[int, int, int]
    ) -> None:
        number, scales = shared
        m, n, k = at
        sfa, sfb = (_address(x, (i, k)) for x, i in zip(scales, (m, n), strict=True))
        ids = ((sfa >> 30) & 3) << _A_ID | ((sfb >> 30) & 3) << _B_ID
        arch.tcgen05_mma_block_scale(
            self.kind,
            d,
            a,
            b,
            Int32(_signed(number)) | ids,
            accumulate,
            sfa & _ADDRESS,
            sfb & _ADDRESS,
            vector=self.sf_vec_size,
            cta_group=self.cta_group,
            is_long=self.is_long,
        )


def _signed(bits: int) -> int:
    return bits - (bits >> 31 << 32)


def _address(scales: Any, at: tuple[int, int]) -> Any:
    """Return the address of an instruction's factors, as an Int32."""
    if not isinstance(scales, Tensor):
        return as_numeric(scales).to(Int32)
    layout = algebra.append(scales.layout, up_to_rank=3)
    return scales.pointer.moved(layout((0, *at))).toint()


class MmaMXF8F6F4Op(BlockScaledMma):
    """The tcgen05.mma of floats of 8, 6 and 4 bits with a factor for 32 elements, K = 32 (PTX
    kind::mxf8f6f4).

    Arguments: `(a_dtype, b_dtype, shape_mnk, cta_group, a_src, a_major_mode, b_major_mode)`.
    Factors are Float8E8M0FNU, sums Float32. M is 128, or 256 over two blocks; N a multiple of 8 up
    to 256 (16). Elements of 4 and 6 bits are as for `MmaF8F6F4Op`. Raises DSLTypeError for other
    arguments.
    """

    kind: ClassVar[str] = "mxf8f6f4"

    def __init__(self, a_dtype: Any, b_dtype: Any, *where: Any, **named: Any) -> None:
        super().__init__(a_dtype, b_dtype, Float32, *where, **named)


class MmaMXF8Op(MmaMXF8F6F4Op):
    """The tcgen05.mma of 8-bit floats with a factor for 32 elements; see `MmaMXF8F6F4Op`.

    Arguments: `(ab_dtype, shape_mnk, cta_group, a_src, a_major_mode, b_major_mode)`, or
    with two element types.
    """

    def __init__(self, a_dtype: Any, *where: Any, **named: Any) -> None:
        if where and isinstance(where[0], type):
            super().__init__(a_dtype, *where, **named)
        else:
            super().__init__(a_dtype, a_dtype, *where, **named)


class MmaMXF4Op(BlockScaledMma):
    """The tcgen05.mma of Float4E2M1FN with a Float8E8M0FNU for 32 elements, K = 64 (PTX
    kind::mxf4).

    Arguments: `(shape_mnk, cta_group, a_src)`. Both operands are K-major. M is 128, or 128 or 256
    over two blocks; N a multiple of 8 up to 256 (16). Raises DSLTypeError for other arguments.
    """

    kind: ClassVar[str] = "mxf4"

    def __init__(self, *where: Any, **named: Any) -> None:
        super().__init__(Float4E2M1FN, Float4E2M1FN, Float32, *where, **named)


class MmaMXF4NVF4Op(BlockScaledMma):
    """The tcgen05.mma of Float4E2M1FN with a factor for 16 elements, K = 64 (PTX kind::mxf4nvf4).

    Arguments: `(sf_dtype, shape_mnk, cta_group, a_src)`. Factors are Float8E4M3FN or Float8E8M0FNU,
    read without their sign. Shapes are those of MmaMXF4Op. Raises DSLTypeError for other arguments.
    """

    kind: ClassVar[str] = "mxf4nvf4"

    def __init__(self, sf_dtype: Any, *where: Any, **named: Any) -> None:
        named = {"sf_vec_size": 16, **named, "sf_dtype": sf_dtype}
        super().__init__(Float4E2M1FN, Float4E2M1FN, Float32, *where, **named)


class SM103MmaMXF4Op(BlockScaledMma):
    """The tcgen05.mma of Float4E2M1FN with a Float8E8M0FNU for 32 elements, K = 96 (sm_103f).

    Arguments: `(shape_mnk, cta_group)`. Both operands are K-major in shared memory; a row of an
    instruction has 48 bytes, which may lie in two buffers: `make_umma_smem_desc` describes them.
    M is 128, or 128 or 256 over two blocks; N a multiple of 16 up to 256. Raises DSLTypeError for
    other arguments.
    """

    kind: ClassVar[str] = "mxf4nvf4"
    is_long: ClassVar[bool] = True

    def __init__(self, *where: Any, **named: Any) -> None:
        super().__init__(Float4E2M1FN, Float4E2M1FN, Float32, *where, **named)


class SM103MmaMXF4NVF4Op(BlockScaledMma):
    """The tcgen05.mma of Float4E2M1FN with a factor for 16 elements, K = 96 (sm_103f).

    Arguments: `(sf_dtype, shape_mnk, cta_group)`. Factors are as for `MmaMXF4NVF4Op`, operands and
    shapes as for `SM103MmaMXF4Op`. Raises DSLTypeError for other arguments.
    """

    kind: ClassVar[str] = "mxf4nvf4"
    is_long: ClassVar[bool] = True

    def __init__(self, sf_dtype: Any, *where: Any, **named: Any) -> None:
        named = {"sf_vec_size": 16, **named, "sf_dtype": sf_dtype}
        super().__init__(Float4E2M1FN, Float4E2M1FN, Float32, *where, **named)
