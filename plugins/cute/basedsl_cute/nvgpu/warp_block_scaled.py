"""mma.sync with scale factors, of GeForce Blackwell GPUs: D = (A SFA) (B SFB) + C in registers, a
factor for each vector of elements along K (PTX ISA, "mma with block scaling").

A lane holds its factors in registers too: `cute.gemm(mma, d, [a, sfa], [b, sfb], c)` takes them
with the operands, as `utils.sm100.partition_fragment_SFA` makes them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from basedsl import (
    DSLTypeError,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float32,
    Int8,
    Numeric,
    Uint8,
    current_trace,
)
from basedsl_cute import algebra
from basedsl_cute.algebra import MmaAtomLayout
from basedsl_cute.arch.emit import emit_op
from basedsl_cute.atoms.mma import MmaOp, disagree, extents, parts
from basedsl_cute.tensors.make_tensor import make_rmem_tensor, make_tensor
from basedsl_cute.tensors.pointer import Pointer, storage_bits
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vector_ops import bits_as, extract
from basedsl_cute.tensors.vectorized_access import load_vector, store_vector

_NAMES: dict[Any, str] = {
    Float8E4M3FN: "e4m3", Float8E5M2: "e5m2", Float6E2M3FN: "e2m3", Float6E3M2FN: "e3m2",
    Float4E2M1FN: "e2m1",
}  # fmt: skip
_SCALES: dict[Any, str] = {Float8E8M0FNU: "ue8m0", Float8E4M3FN: "ue4m3"}
_BYTES = (Int8, Uint8)  # hold elements of 4 and 6 bits that are not packed

MXF8F6F4_SUPPORTED_PAIRS = tuple((a, b) for a in _NAMES for b in _NAMES)
"""The element types (A, B) that `MmaMXF8F6F4Op` multiplies."""


class Field(enum.StrEnum):
    """A field of a tiled MMA with scale factors, set by `mma.set(field, value)`.

    ACCUMULATE is True: the instruction always adds C. SFA and SFB are pointers to the registers of
    the scale factors of one instruction.
    """

    ACCUMULATE = "accumulate"
    SFA = "sfa"
    SFB = "sfb"


@dataclass(frozen=True)
class WarpBlockScaledMma(MmaOp):
    """The base of mma.sync with scale factors of type `sf_dtype`, one for `sf_vec_size` elements
    along K.

    A and B have elements of `a_dtype` and `b_dtype`; D and C are Float32, which `acc_dtype` must
    be. Raises DSLTypeError for types that the instruction does not have. Elements of 4 and 6 bits
    have a byte each beside others (`kind` mxf8f6f4), in tensors of bytes: 4 bits from bit 2 of the
    byte on, 6 from bit 0 on.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    sf_dtype: type[Numeric]
    sf_vec_size: int

    kind: ClassVar[str]
    shape_mnk: ClassVar[tuple[int, int, int]]
    scales: ClassVar[Mapping[str, int]]
    """The elements that share a factor, by the factor's type."""

    def __post_init__(self) -> None:
        name = type(self).__name__
        known = self.known_types()
        for dtype in (self.a_dtype, self.b_dtype):
            if dtype not in known:
                raise DSLTypeError(
                    f"{name} multiplies {' or '.join(x.__name__ for x in known)}, not "
                    f"{getattr(dtype, '__name__', dtype)}"
                )
        if self.acc_dtype is not Float32:
            raise DSLTypeError(
                f"{name} accumulates in Float32, not "
                f"{getattr(self.acc_dtype, '__name__', self.acc_dtype)}"
            )
        if self.scales.get(_SCALES.get(self.sf_dtype, "")) != self.sf_vec_size:
            wanted = " or ".join(
                f"{dtype.__name__} for {self.scales[short]} elements"
                for dtype, short in _SCALES.items() if short in self.scales
            )  # fmt: skip
            raise DSLTypeError(
                f"{name} takes factors of {wanted}, not "
                f"{getattr(self.sf_dtype, '__name__', self.sf_dtype)} for {self.sf_vec_size}"
            )

    def known_types(self) -> tuple[type[Numeric], ...]:
        """Return the element types of A and B."""
        return (Float4E2M1FN,)

    @property
    def fields(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"accumulate": True, "sfa": 0, "sfb": 0}

    def check_field(self, name: str, value: Any) -> None:
        """Raise DSLTypeError for a `value` that the field called `name` cannot have."""
        if name == "accumulate":
            if value is not True:
                raise DSLTypeError(
                    f"{type(self).__name__} always adds C; Field.ACCUMULATE is True, not {value}",
                    hint="fill the accumulator first: acc.fill(0)",
                )
        elif not (isinstance(value, Pointer) and value.space == "rmem"):
            raise DSLTypeError(
                f"Field.{name.upper()} is a pointer to registers, not {value}",
                hint="mma.set(warp.Field.SFA, tCrSFA[(None, m, k)].iterator)",
            )

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        """The element types of D, A, B and C."""
        return Float32, self.a_dtype, self.b_dtype, Float32

    def layout(self) -> MmaAtomLayout:
        """The shape and the thread-value layouts of the instruction."""
        return algebra.warp_mma(self.shape_mnk, 256 // self.shape_mnk[2])

    @property
    def factors(self) -> int:
        """The number of factors that a row or column has in one instruction."""
        return self.shape_mnk[2] // self.sf_vec_size

    def make_fragment(self, operand: str, x: Any) -> Any:
        """Registers for `x`, the partitioned `operand` "A", "B" or "C" (a tensor, or a shape);
        bytes for elements that are not packed.
        """
        dtype = self.dtypes["DABC".index(operand)]
        held = Int8 if dtype.width < 8 and self.shape_mnk[2] == 32 else dtype
        layout = x.layout if isinstance(x, Tensor) else algebra.make_layout(x)
        while isinstance(layout, algebra.ComposedLayout):
            layout = layout.outer
        return make_rmem_tensor(algebra.make_fragment_like(layout), held)

    def multiply(self, fields: Mapping[str, Any], d: Any, a: Any, b: Any, c: Any) -> None:
        """Emit D = (A SFA) (B SFB) + C on one lane's fragments.

        `d` and `c` are accumulators; `a` and `b` are fragments, or [fragment, factors] of both:
        else the factors of one instruction are at the pointers in `fields`. Raises DSLTypeError for
        fragments of other types, or whose shapes do not agree.
        """
        if isinstance(a, list | tuple) != isinstance(b, list | tuple):
            raise DSLTypeError("gemm takes scale factors with both operands: [a, sfa] and [b, sfb]")
        if isinstance(a, list | tuple):
            (a, sfa), (b, sfb) = a, b
        else:
            sfa, sfb = (self._at_pointer(fields[name], x) for name, x in (("sfa", a), ("sfb", b)))
        for name, x in (("a", a), ("b", b)):
            self._check_operand(name, x)
        for name, x in (("d", d), ("c", c)):
            if not isinstance(x, Tensor) or x.element_type is not Float32:
                raise DSLTypeError(f"gemm: {name} is {x}, not a fragment of Float32")
        (ms, ks), (ns, kb) = extents(a), extents(b)
        if ks != kb or extents(d) != (ms, ns) or extents(c) != (ms, ns):
            raise disagree(d, a, b, c)
        rows, columns = parts(a, ms, ks), parts(b, ns, ks)
        factors_a = self._factors("A", sfa, (ms, ks))
        factors_b = self._factors("B", sfb, (ns, ks))
        results, added = parts(d, ms, ns), parts(c, ms, ns)
        for k in range(ks):
            for m in range(ms):
                for n in range(ns):
                    at = m + ms * n
                    self._emit(
                        results[at], rows[m + ms * k], columns[n + ns * k],
                        added[at] if k == 0 else results[at],
                        factors_a[m + ms * k], factors_b[n + ns * k],
                    )  # fmt: skip

    def _at_pointer(self, pointer: Any, x: Any) -> Any:
        if not isinstance(pointer, Pointer):
            raise DSLTypeError(
                f"{type(self).__name__} has no scale factors yet",
                hint="cute.gemm(mma, d, [a, sfa], [b, sfb], c), or mma.set(Field.SFA, pointer)",
            )
        if extents(x) != (1, 1):
            raise DSLTypeError(
                "Field.SFA and SFB are the factors of one instruction; a and b are more",
                notes=((f"an operand has the shape {x.shape}", None),),
                hint="cute.gemm(mma, d, [a, sfa], [b, sfb], c) takes factors for all",
            )
        return make_tensor(pointer, algebra.make_layout(self.factors))

    def _check_operand(self, name: str, x: Any) -> None:
        dtype = self.a_dtype if name == "a" else self.b_dtype
        as_bytes = dtype.width < 8 and self.shape_mnk[2] == 32
        if not isinstance(x, Tensor) or not algebra.is_static(x.shape):
            raise DSLTypeError(f"gemm: {name} is {x}, not a fragment of static shape")
        if x.element_type is not dtype and not (as_bytes and x.element_type in _BYTES):
            wanted = (
                f"Int8 or Uint8, a byte for each {dtype.__name__}" if as_bytes else dtype.__name__
            )
            raise DSLTypeError(
                f"gemm: {name} has elements of {x.element_type.__name__}, not {wanted}",
                notes=((f"the operation is {self}", None),),
            )
        values = int(algebra.size(x.shape, [0]))
        bits = (16 if name == "a" else 8) * 256 // 32
        if values * storage_bits(x.element_type) != bits:
            raise DSLTypeError(
                f"gemm: {name} has {values} values for each instruction, which takes "
                f"{bits // storage_bits(x.element_type)}",
                notes=((f"{name} has the shape {x.shape}", None),),
                hint=f"make it with make_fragment_{name.upper()}, of what partition_"
                f"{name.upper()} gives",
            )

    def _factors(self, operand: str, scales: Any, wanted: tuple[int, int]) -> list[Any]:
        """Return the factors of each instruction, the mode of rows or columns fastest."""
        if not isinstance(scales, Tensor) or scales.memspace != "rmem":
            raise DSLTypeError(f"the scale factors of {operand} are a tensor in registers")
        if scales.element_type is not self.sf_dtype:
            raise DSLTypeError(
                f"the scale factors of {operand} are of {scales.element_type.__name__}, not "
                f"{self.sf_dtype.__name__}"
            )
        layout = algebra.append(scales.layout, up_to_rank=3)
        sizes = (int(algebra.size(layout, 1)), int(algebra.size(layout, 2)))
        own = algebra.coalesce(algebra.filter_zeros(layout[0]))
        if sizes != wanted or int(algebra.size(own)) != self.factors:
            raise DSLTypeError(
                f"the scale factors of {operand} do not fit its instructions",
                notes=(
                    (f"they have the shape {scales.shape}: (factors, MN, K)", None),
                    (f"needed are {self.factors} factors for {wanted} instructions (MN, K)", None),
                ),
                hint=f"utils.sm100.partition_fragment_SF{operand} makes them",
            )
        return [
            scales._at(layout((0, i, k)), own) for k in range(wanted[1]) for i in range(wanted[0])
        ]

    def _emit(self, d: Any, a: Any, b: Any, c: Any, sfa: Any, sfb: Any) -> None:
        what = type(self).__name__
        m, n, k = self.shape_mnk
        zero = emit_op(what, "arith.constant", (), ["i16"], {"value": "0 : i16"}).result
        words = [_words(x, "i32") for x in (a, b)]
        sums = _words(c, "f32")
        attributes = {
            "shape": f"#nvvm.shape<m = {m}, n = {n}, k = {k}>",
            "multiplicandAPtxType": f"#nvvm.mma_type<{_NAMES[self.a_dtype]}>",
            "multiplicandBPtxType": f"#nvvm.mma_type<{_NAMES[self.b_dtype]}>",
            "scaleVecSize": f"#nvvm.scale_vec_size<x{self.factors}>",
            "blockScaleFormat": f"#nvvm.block_scale_format<{_SCALES[self.sf_dtype]}>",
            "kind": f"#nvvm.block_scale_kind<{self.kind}>",
            "operandSegmentSizes": f"array<i32: {len(words[0])}, {len(words[1])}, {len(sums)}, "
            "1, 1, 1, 1, 1, 1>",
        }
        operands = [*words[0], *words[1], *sums, self._word(sfa), zero, zero, self._word(sfb)]
        struct = f"!llvm.struct<({', '.join(['f32'] * len(sums))})>"
        made = emit_op(
            what, "nvvm.mma.block_scale", [*operands, zero, zero], [struct], attributes
        ).result
        results = [
            emit_op(
                what, "llvm.extractvalue", [made], ["f32"], {"position": f"array<i64: {i}>"}
            ).result
            for i in range(len(sums))
        ]
        kind = f"vector<{len(results)}xf32>"
        store_vector(d, emit_op(what, "vector.from_elements", results, [kind]).result)

    def _word(self, factors: Any) -> Any:
        """Return the factors of a row or column in one register, the first in its lowest byte."""
        trace = current_trace("scale factors")
        byte, word = (trace.ir.IntegerType.get_signless(bits) for bits in (8, 32))
        held = bits_as(load_vector(factors), byte, self.factors)
        what = "scale factors"
        bytes_ = [extract(held, i) for i in range(self.factors)]
        if len(bytes_) < 4:
            zero = emit_op(what, "arith.constant", (), ["i8"], {"value": "0 : i8"}).result
            bytes_ += [zero] * (4 - len(bytes_))
        four = emit_op(what, "vector.from_elements", bytes_, ["vector<4xi8>"]).result
        return extract(bits_as(four, word, 1), 0)


def _words(x: Tensor, kind: str) -> list[Any]:
    """Return the registers of a fragment of one instruction."""
    trace = current_trace("gemm")
    count = int(algebra.size(x.shape)) * storage_bits(x.element_type) // 32
    vector = bits_as(load_vector(x), trace.ir.Type.parse(kind), count)
    return [extract(vector, i) for i in range(count)]


class MmaMXF8F6F4Op(WarpBlockScaledMma):
    """The mma.sync of floats of 8, 6 and 4 bits with a Float8E8M0FNU for 32 elements, 16x8x32
    (sm_120a).

    Arguments: `(a_dtype, b_dtype, acc_dtype, sf_dtype)`. Operands of 4 and 6 bits are fragments of
    Int8 or Uint8; see `WarpBlockScaledMma`. Raises DSLTypeError for other types.
    """

    kind: ClassVar[str] = "mxf8f6f4"
    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 32)
    scales: ClassVar[Mapping[str, int]] = {"ue8m0": 32}

    def __init__(self, a_dtype: Any, b_dtype: Any, acc_dtype: Any, sf_dtype: Any) -> None:
        super().__init__(a_dtype, b_dtype, acc_dtype, sf_dtype, 32)

    def known_types(self) -> tuple[type[Numeric], ...]:
        """Return the element types of A and B."""
        return tuple(_NAMES)


class MmaMXF8Op(MmaMXF8F6F4Op):
    """The mma.sync of 8-bit floats, the same for A and B; see `MmaMXF8F6F4Op`.

    Arguments: `(ab_dtype, acc_dtype, sf_dtype)`.
    """

    def __init__(self, ab_dtype: Any, acc_dtype: Any, sf_dtype: Any) -> None:
        super().__init__(ab_dtype, ab_dtype, acc_dtype, sf_dtype)

    def known_types(self) -> tuple[type[Numeric], ...]:
        """Return the element types of A and B."""
        return (Float8E4M3FN, Float8E5M2)


class MmaMXF4Op(WarpBlockScaledMma):
    """The mma.sync of Float4E2M1FN with a Float8E8M0FNU for 32 elements, 16x8x64 (sm_120a).

    Arguments: `(ab_dtype, acc_dtype, sf_dtype)`. Raises DSLTypeError for other types.
    """

    kind: ClassVar[str] = "mxf4nvf4"
    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 64)
    scales: ClassVar[Mapping[str, int]] = {"ue8m0": 32}

    def __init__(self, ab_dtype: Any, acc_dtype: Any, sf_dtype: Any) -> None:
        super().__init__(ab_dtype, ab_dtype, acc_dtype, sf_dtype, 32)


class MmaMXF4NVF4Op(WarpBlockScaledMma):
    """The mma.sync of Float4E2M1FN with a Float8E4M3FN, read without its sign, for 16 elements,
    16x8x64 (sm_120a).

    Arguments: `(ab_dtype, acc_dtype, sf_dtype)`. Raises DSLTypeError for other types.
    """

    kind: ClassVar[str] = "mxf4nvf4"
    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 64)
    scales: ClassVar[Mapping[str, int]] = {"ue4m3": 16}

    def __init__(self, ab_dtype: Any, acc_dtype: Any, sf_dtype: Any) -> None:
        super().__init__(ab_dtype, ab_dtype, acc_dtype, sf_dtype, 16)
