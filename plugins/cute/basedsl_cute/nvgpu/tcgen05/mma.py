"""tcgen05.mma: D = A B + D, with D in tensor memory (PTX ISA 9.7.16.10).

One thread issues it for a block or a pair; `cute.gemm` elects one of the warp that calls it. It is
asynchronous: `commit` has an mbarrier arrive when all that this thread has issued is complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

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
    Int64,
    Numeric,
    TFloat32,
    Uint8,
    as_numeric,
    current_trace,
)
from basedsl_cute import algebra, arch
from basedsl_cute.algebra import MmaAtomLayout
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.atoms.mma import MmaOp, disagree, extents
from basedsl_cute.hardware.tensor_memory import (
    KINDS,
    can_transpose,
    instruction_descriptor,
    refused_shape,
)
from basedsl_cute.nvgpu.matrix_descriptor import DescriptorTensor
from basedsl_cute.nvgpu.operand_modes import OperandMajorMode
from basedsl_cute.nvgpu.tcgen05.modes import CtaGroup, OperandSource
from basedsl_cute.tensors.make_tensor import make_ptr, make_tensor
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor

# PTX's names of element types, as instruction descriptors have them.
_NAMES = {
    Float16: "f16", BFloat16: "bf16", TFloat32: "tf32", Float32: "f32", Int8: "s8", Uint8: "u8",
    Int32: "s32", Float8E4M3FN: "e4m3", Float8E5M2: "e5m2",
}  # fmt: skip


class _BlockMma(MmaOp):
    """The base of tcgen05.mma of dense operands."""

    threads_are_blocks = True
    kind: ClassVar[str]
    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    def __post_init__(self) -> None:
        _check(self)

    @property
    def fields(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The fields that `mma.set` takes: ACCUMULATE, and for floats NEGATE_A and NEGATE_B."""
        if not KINDS[self.kind].can_negate:
            return {"accumulate": False}
        return {"accumulate": False, "negate_a": False, "negate_b": False}

    def check_field(self, name: str, value: Any) -> None:
        if name != "accumulate" and type(value) is not bool:
            raise DSLTypeError(
                f"Field.{name.upper()} is True or False when the kernel is compiled, not {value}"
            )

    @property
    def dtypes(self) -> tuple[Any, Any, Any, Any]:
        return self.acc_dtype, self.a_dtype, self.b_dtype, self.acc_dtype

    def layout(self) -> MmaAtomLayout:
        return algebra.tcgen05_mma(self.shape_mnk, int(self.cta_group))

    def make_fragment(self, operand: str, x: Any) -> Any:
        """Return the fragment of a partitioned operand: descriptors of shared memory for A and B;
        for C, and A in tensor memory, a tensor at address 0 of it, whose layout is what counts.
        """
        in_tmem = self.a_src is OperandSource.TMEM
        if operand == "C" or (operand == "A" and in_tmem):
            shape = getattr(x, "shape", x)
            blocks = int(self.cta_group)
            if operand == "C":
                dtype = self.acc_dtype
                fragment = algebra.accumulator_fragment(dtype.width, blocks, in_tmem)
            else:
                dtype = self.a_dtype
                fragment = algebra.tmem_operand_fragment(dtype.width, blocks)
            return make_tensor(make_ptr(dtype, 0, "tmem"), fragment.layout(shape))
        dtype, major = {
            "A": (self.a_dtype, self.a_major_mode),
            "B": (self.b_dtype, self.b_major_mode),
        }[operand]
        if not isinstance(x, Tensor) or x.memspace != "smem":
            raise DSLTypeError(
                f"tcgen05.mma reads {operand} from shared memory: a fragment is made of it, not "
                f"of {x}",
                hint=f"mma.make_fragment_{operand}(smem_tensor), of shape (MMA, MMA_MN, MMA_K, ..)",
            )
        if x.element_type is not dtype:
            raise DSLTypeError(
                f"{operand} has elements of {x.element_type.__name__}, not {dtype.__name__}",
                notes=((f"the operation is {self}", None),),
            )
        return _descriptors(x, major is OperandMajorMode.K)

    def multiply(self, fields: Mapping[str, Any], d: Any, a: Any, b: Any, c: Any) -> None:
        """Issue D = A B + D, all steps of K; C must be the tensor of D.

        Without ACCUMULATE the first step of K replaces the values of D; the others add.
        """
        if c is not d and c.pointer.address.ir_value() != d.pointer.address.ir_value():
            raise DSLTypeError("tcgen05.mma accumulates in place: pass the same tensor as d and c")
        self._check_operands(d, a, b)
        (ms, ks), (ns, kb) = extents(a), extents(b)
        if kb != ks or extents(d) != (ms, ns):
            raise disagree(d, a, b, c)
        layouts = [algebra.append(x.layout, up_to_rank=3) for x in (d, a, b)]
        flag = fields["accumulate"]
        first = as_numeric(flag).to(Boolean).ir_value()
        number = self._descriptor(fields)
        with arch.elect_one():
            after = Boolean(True).ir_value()
            for m in range(ms):
                for n in range(ns):
                    for k in range(ks):
                        self._emit(
                            d.pointer.moved(layouts[0]((0, m, n))).llvm_ptr,
                            _operand(a, layouts[1]((0, m, k))),
                            _operand(b, layouts[2]((0, n, k))),
                            number,
                            after if k else first,
                        )

    def _check_operands(self, d: Any, a: Any, b: Any) -> None:
        in_tmem = self.a_src is OperandSource.TMEM
        for name, x, tmem in (("d", d, True), ("a", a, in_tmem), ("b", b, False)):
            fits = isinstance(x, Tensor) and x.memspace == "tmem" if tmem else isinstance(
                x, DescriptorTensor
            )  # fmt: skip
            if not fits:
                wanted = "a tensor in tensor memory" if tmem else "descriptors of shared memory"
                letter = "C" if name == "d" else name.upper()
                raise DSLTypeError(
                    f"{type(self).__name__} takes {name} as {wanted}",
                    notes=((f"{name} is {x}", None),),
                    hint=f"make it with make_fragment_{letter}",
                )
        if d.element_type is not self.acc_dtype:
            raise DSLTypeError(
                f"d has elements of {d.element_type.__name__}, not {self.acc_dtype.__name__}",
                notes=((f"the operation is {self}", None),),
            )

    def _descriptor(self, fields: Mapping[str, Any]) -> int:
        """Return the instruction descriptor."""
        a, b, acc = (_NAMES[x] for x in (self.a_dtype, self.b_dtype, self.acc_dtype))
        majors = (self.a_major_mode, self.b_major_mode)
        m, n, _ = self.shape_mnk
        return instruction_descriptor(
            self.kind,
            (a, b, acc),
            (m, n),
            mn_major=(majors[0] is OperandMajorMode.MN, majors[1] is OperandMajorMode.MN),
            negate=(bool(fields.get("negate_a")), bool(fields.get("negate_b"))),
        )

    def _emit(self, d: Any, a: Any, b: Any, number: int, accumulate: Any) -> None:
        attributes = {
            "kind": f"#nvvm.tcgen05_mma_kind<{self.kind}>",
            "ctaGroup": f"#nvvm.cta_group<cta_{int(self.cta_group)}>",
            "operandSegmentSizes": "array<i32: 1, 1, 1, 1, 1, 0, 0>",
        }
        operands = [d, a, b, i32(number), accumulate]
        emit_op("cute.gemm", "nvvm.tcgen05.mma", operands, attributes=attributes)


def _operand(x: Any, offset: Any) -> Any:
    """Return the address of one instruction's operand: a descriptor, or a pointer."""
    if isinstance(x, DescriptorTensor):
        return (x.start + offset).ir_value()
    return x.pointer.moved(offset).llvm_ptr


def _descriptors(tensor: Tensor, is_k_major: bool) -> DescriptorTensor:
    """Return descriptors of an operand in shared memory, ((MN, K), MMA_MN, MMA_K, ...)."""
    pointer, layout = tensor.pointer, tensor.layout
    bits = pointer.dtype.width
    if not isinstance(layout, algebra.Layout):
        raise DSLTypeError(
            f"tcgen05.mma needs the swizzle on the pointer, not in the layout {layout}",
            hint="allocate_tensor(dtype, layout.outer, byte_alignment=1024, swizzle=layout.inner)",
        )
    swizzle = pointer.swizzle if pointer.swizzle is not None else algebra.Swizzle(0, 4, 3)
    try:
        found = algebra.operand_descriptor(algebra.get(layout, 0), swizzle, is_k_major, bits)
        steps = algebra.descriptor_layout(layout, bits)
    except algebra.LayoutError as error:
        raise DSLTypeError(
            f"tcgen05.mma cannot read a {'K' if is_k_major else 'MN'}-major operand of {layout}",
            notes=((str(error), None),),
            hint="make the layout with blackwell_helpers.make_smem_layout_a or _b",
        ) from error
    constant = found.constant_bits
    start = ((pointer.toint() >> 4) & 0x3FFF).to(Int64)
    return DescriptorTensor(start | Int64(constant - (constant >> 63 << 64)), steps)


@dataclass(frozen=True)
class MmaF16BF16Op(_BlockMma):
    """The tcgen05.mma of Float16 or BFloat16, K = 16 (PTX kind::f16).

    Float16 accumulates in Float32 or Float16, BFloat16 in Float32. M is 64 or 128, with two blocks
    128 or 256; N a multiple of 8 up to 256 (16 for two blocks). Raises DSLTypeError for other
    arguments.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    kind: ClassVar[str] = "f16"

    @property
    def a_dtype(self) -> Any:  # type: ignore[override]
        return self.ab_dtype

    b_dtype = a_dtype


@dataclass(frozen=True)
class MmaTF32Op(_BlockMma):
    """The tcgen05.mma of TFloat32 accumulating in Float32, K = 8 (PTX kind::tf32).

    Shapes are those of MmaF16BF16Op. Raises DSLTypeError for other arguments.
    """

    shape_mnk: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    kind: ClassVar[str] = "tf32"

    @property
    def a_dtype(self) -> Any:  # type: ignore[override]
        return TFloat32

    b_dtype = a_dtype

    @property
    def acc_dtype(self) -> Any:  # type: ignore[override]
        return Float32


@dataclass(frozen=True)
class MmaI8Op(_BlockMma):
    """The tcgen05.mma of Int8 or Uint8 accumulating in Int32, K = 32 (PTX kind::i8, sm_100a).

    N is 8 or a multiple of 16 (32 for two blocks). Raises DSLTypeError for other arguments.
    """

    ab_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    kind: ClassVar[str] = "i8"

    @property
    def a_dtype(self) -> Any:  # type: ignore[override]
        return self.ab_dtype

    b_dtype = a_dtype

    @property
    def acc_dtype(self) -> Any:  # type: ignore[override]
        return Int32


@dataclass(frozen=True)
class MmaFP8Op(_BlockMma):
    """The tcgen05.mma of Float8E4M3FN and Float8E5M2 in any mix, K = 32 (PTX kind::f8f6f4).

    It accumulates in Float32 or Float16. Shapes are those of MmaF16BF16Op. Raises DSLTypeError for
    other arguments.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    kind: ClassVar[str] = "f8f6f4"


def _check(op: _BlockMma) -> None:
    """DSLTypeError, with the choices there are, unless the hardware has this instruction."""
    name, kind = type(op).__name__, KINDS[op.kind]
    for letter, dtype in (("A", op.a_dtype), ("B", op.b_dtype)):
        if _NAMES.get(dtype) not in kind.formats:
            known = " or ".join(x.__name__ for x, short in _NAMES.items() if short in kind.formats)
            raise DSLTypeError(f"{name} takes {letter} of {known}, not {_name(dtype)}")
    sums = [x for x in kind.accumulators if (op.a_dtype, x) != (BFloat16, "f16")]
    if _NAMES.get(op.acc_dtype) not in sums:
        named = " or ".join(x.__name__ for x, short in _NAMES.items() if short in sums)
        raise DSLTypeError(
            f"{name} of {_name(op.a_dtype)} accumulates in {named}, not {_name(op.acc_dtype)}"
        )
    if len(op.shape_mnk) != 3 or op.shape_mnk[2] != kind.k:
        raise DSLTypeError(f"{name} has the shapes (M, N, {kind.k}), not {op.shape_mnk}")
    in_tmem = op.a_src is OperandSource.TMEM
    refused = refused_shape(op.kind, *op.shape_mnk[:2], int(op.cta_group), in_tmem)
    if refused is not None:
        raise DSLTypeError(f"{name} has no shape {op.shape_mnk}: {refused}")
    if in_tmem and op.a_major_mode is not OperandMajorMode.K:
        raise DSLTypeError(f"{name}: A in tensor memory is K-major")
    for letter, dtype, major in (
        ("A", op.a_dtype, op.a_major_mode),
        ("B", op.b_dtype, op.b_major_mode),
    ):
        if major is not OperandMajorMode.K and not can_transpose(_NAMES[dtype]):
            raise DSLTypeError(f"{name} takes {letter} of {_name(dtype)} K-major only")


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "__name__", dtype))


@takes_location
def commit(mbar_ptr: Pointer, mask: Any = None, cta_group: CtaGroup = CtaGroup.ONE) -> None:
    """Have an mbarrier arrive once when the tcgen05 instructions that one lane of this warp has
    issued are complete (PTX `tcgen05.commit`).

    It elects that lane as `cute.gemm` does. `mask` has the blocks of the cluster whose mbarriers
    arrive, as bits. Raises DSLTypeError for a pointer that is not into shared memory.
    """
    what = "tcgen05.commit()"
    operands = [shared_address(mbar_ptr, what)]
    if mask is not None:
        trace = current_trace(what)
        number = i32(mask)
        small = trace.ir.IntegerType.get_signless(16)
        operands.append(trace.emit_op("arith.trunci", small, number))
    attributes = {"group": f"#nvvm.cta_group<cta_{int(cta_group)}>"}
    with arch.elect_one():
        emit_op(what, "nvvm.tcgen05.commit", operands, attributes=attributes)
