"""tcgen05.mma: D = A B + D, with D in tensor memory (PTX ISA, "tcgen05.mma").

One thread issues it for a block or a pair; `cute.gemm` elects one of the warp that calls it. It is
asynchronous: `commit` has an mbarrier arrive when all that this thread has issued is complete.
Instructions with scale factors are in `block_scaled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from basedsl import (
    BFloat16,
    Boolean,
    DSLTypeError,
    Float32,
    Int32,
    Numeric,
    TFloat32,
    as_numeric,
)
from basedsl_cute import algebra, arch
from basedsl_cute.algebra import MmaAtomLayout
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.mma import MmaOp, disagree, extents
from basedsl_cute.hardware.tensor_memory import (
    KINDS,
    LONG_K,
    can_transpose,
    instruction_descriptor,
    refused_shape,
)
from basedsl_cute.nvgpu.matrix_descriptor import DescriptorTensor
from basedsl_cute.nvgpu.operand_modes import OperandMajorMode
from basedsl_cute.nvgpu.tcgen05.modes import CtaGroup, OperandSource
from basedsl_cute.nvgpu.tcgen05.operands import (
    NAMES,
    known_types,
    operand_address,
    smem_fragment,
    tmem_fragment,
    type_name,
)
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor


@dataclass(frozen=True)
class BlockMma(MmaOp):
    """The base of tcgen05.mma, by one block or a pair."""

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    kind: ClassVar[str]
    is_long: ClassVar[bool] = False  # K = 96
    threads_are_blocks = True

    def __post_init__(self) -> None:
        _check_operand_types(self)

    @property
    def fields(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The fields that `mma.set` takes, with their initial values."""
        if not KINDS[self.kind].can_negate:
            return {"accumulate": False}
        return {"accumulate": False, "negate_a": False, "negate_b": False}

    def check_field(self, name: str, value: Any) -> None:
        if name.startswith("negate") and type(value) is not bool:
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
        shape, blocks = getattr(x, "shape", x), int(self.cta_group)
        if operand == "C":
            acc = self.acc_dtype
            found = algebra.accumulator_fragment(acc.width, blocks, in_tmem)
            return tmem_fragment(acc, found, shape)
        if operand == "A" and in_tmem:
            found = algebra.tmem_operand_fragment(self.a_dtype.width, blocks)
            return tmem_fragment(self.a_dtype, found, shape)
        dtype, major = {
            "A": (self.a_dtype, self.a_major_mode),
            "B": (self.b_dtype, self.b_major_mode),
        }[operand]
        return smem_fragment(self, operand, dtype, x, major is OperandMajorMode.K)

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
        first = as_numeric(fields["accumulate"]).to(Boolean)
        more = self.prepare(fields)
        with arch.elect_one():
            after = Boolean(True)
            for m in range(ms):
                for n in range(ns):
                    for k in range(ks):
                        self.emit(
                            d.pointer.moved(layouts[0]((0, m, n))),
                            operand_address(a, layouts[1]((0, m, k))),
                            operand_address(b, layouts[2]((0, n, k))),
                            after if k else first,
                            more,
                            (m, n, k),
                        )

    def prepare(self, fields: Mapping[str, Any]) -> Any:
        """Return what all instructions of one `cute.gemm` share: their descriptor."""
        return self.instruction_descriptor(fields)

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

    def instruction_descriptor(self, fields: Mapping[str, Any], **more: Any) -> int:
        """Return the instruction descriptor, whose fields of scale factors are `more`."""
        a, b, acc = (NAMES[x] for x in (self.a_dtype, self.b_dtype, self.acc_dtype))
        majors = (self.a_major_mode, self.b_major_mode)
        return instruction_descriptor(
            self.kind,
            (a, b, acc),
            self.shape_mnk[:2],
            mn_major=(majors[0] is OperandMajorMode.MN, majors[1] is OperandMajorMode.MN),
            negate=(bool(fields.get("negate_a")), bool(fields.get("negate_b"))),
            **more,
        )

    def emit(
        self, d: Any, a: Any, b: Any, accumulate: Any, shared: Any, at: tuple[int, int, int]
    ) -> None:
        """Emit one instruction; `shared` is of `prepare`, `at` its place (m, n, k)."""
        arch.tcgen05_mma(self.kind, d, a, b, Int32(shared), accumulate, cta_group=self.cta_group)


class MmaF16BF16Op(BlockMma):
    """The tcgen05.mma of Float16 or BFloat16, K = 16 (PTX kind::f16).

    Arguments: `(ab_dtype, acc_dtype, shape_mnk, cta_group, a_src, a_major_mode, b_major_mode)`.
    Float16 accumulates in Float32 or Float16, BFloat16 in Float32. M is 64 or 128, with two blocks
    128 or 256; N a multiple of 8 up to 256 (16 for two blocks). Raises DSLTypeError for other
    arguments.
    """

    kind: ClassVar[str] = "f16"

    def __init__(self, ab_dtype: Any, acc_dtype: Any, *where: Any, **named: Any) -> None:
        super().__init__(ab_dtype, ab_dtype, acc_dtype, *where, **named)


class MmaTF32Op(BlockMma):
    """The tcgen05.mma of TFloat32 accumulating in Float32, K = 8 (PTX kind::tf32).

    Arguments: `(shape_mnk, cta_group, a_src, a_major_mode, b_major_mode)`. Shapes are those of
    MmaF16BF16Op. Raises DSLTypeError for other arguments.
    """

    kind: ClassVar[str] = "tf32"

    def __init__(self, *where: Any, **named: Any) -> None:
        super().__init__(TFloat32, TFloat32, Float32, *where, **named)


class MmaI8Op(BlockMma):
    """The tcgen05.mma of Int8 or Uint8 accumulating in Int32, K = 32 (PTX kind::i8, sm_100a).

    Arguments: `(ab_dtype, shape_mnk, cta_group, a_src, a_major_mode, b_major_mode)`. N is 8 or a
    multiple of 16 (32 for two blocks). Raises DSLTypeError for other arguments.
    """

    kind: ClassVar[str] = "i8"

    def __init__(self, ab_dtype: Any, *where: Any, **named: Any) -> None:
        super().__init__(ab_dtype, ab_dtype, Int32, *where, **named)


class MmaF8F6F4Op(BlockMma):
    """The tcgen05.mma of floats of 8, 6 and 4 bits in any mix, K = 32 (PTX kind::f8f6f4).

    Arguments: `(a_dtype, b_dtype, acc_dtype, shape_mnk, cta_group, a_src, a_major_mode,
    b_major_mode)`. It accumulates in Float32 or Float16. Elements of 4 and 6 bits take a byte each
    in layouts of shared memory, as TMA with `internal_type=Int8` brings them, and are K-major.
    Shapes are those of MmaF16BF16Op. Raises DSLTypeError for other arguments.
    """

    kind: ClassVar[str] = "f8f6f4"


class MmaFP8Op(MmaF8F6F4Op):
    """The tcgen05.mma of Float8E4M3FN and Float8E5M2 in any mix; see `MmaF8F6F4Op`."""


def _check_operand_types(op: BlockMma) -> None:
    """DSLTypeError, with the choices there are, unless the hardware has this instruction."""
    name, kind = type(op).__name__, KINDS[op.kind]
    for letter, dtype in (("A", op.a_dtype), ("B", op.b_dtype)):
        if NAMES.get(dtype) not in kind.formats:
            known = known_types(kind.formats)
            raise DSLTypeError(f"{name} takes {letter} of {known}, not {type_name(dtype)}")
    sums = [x for x in kind.accumulators if (op.a_dtype, x) != (BFloat16, "f16")]
    if NAMES.get(op.acc_dtype) not in sums:
        raise DSLTypeError(
            f"{name} of {type_name(op.a_dtype)} accumulates in {known_types(sums)}, not "
            f"{type_name(op.acc_dtype)}"
        )
    k = LONG_K if op.is_long else kind.k
    if len(op.shape_mnk) != 3 or op.shape_mnk[2] != k:
        raise DSLTypeError(f"{name} has the shapes (M, N, {k}), not {op.shape_mnk}")
    in_tmem = op.a_src is OperandSource.TMEM
    refused = refused_shape(op.kind, *op.shape_mnk[:2], int(op.cta_group), in_tmem, op.is_long)
    if refused is not None:
        raise DSLTypeError(f"{name} has no shape {op.shape_mnk}: {refused}")
    if in_tmem and op.a_major_mode is not OperandMajorMode.K:
        raise DSLTypeError(f"{name}: A in tensor memory is K-major")
    for letter, dtype, major in (
        ("A", op.a_dtype, op.a_major_mode),
        ("B", op.b_dtype, op.b_major_mode),
    ):
        if major is not OperandMajorMode.K and not can_transpose(NAMES[dtype]):
            raise DSLTypeError(f"{name} takes {letter} of {type_name(dtype)} K-major only")


@takes_location
def commit(mbar_ptr: Pointer, mask: Any = None, cta_group: CtaGroup = CtaGroup.ONE) -> None:
    """Have an mbarrier arrive once when the tcgen05 instructions that one lane of this warp has
    issued are complete (PTX `tcgen05.commit`).

    It elects that lane as `cute.gemm` does. `mbar_ptr` points to the mbarrier in shared memory, and
    `cta_group` is that of the instructions. `mask` has the blocks of the cluster whose mbarriers
    arrive, as bits. Raises DSLTypeError for a pointer that is not into shared memory.
    """
    with arch.elect_one():
        arch.tcgen05_commit(mbar_ptr, mask, cta_group)
