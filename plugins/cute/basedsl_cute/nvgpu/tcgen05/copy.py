"""Copies between tensor memory and registers: tcgen05.ld and tcgen05.st (PTX ISA, of these titles).

A warp reaches only its own quarter of the lanes, those from 32 * (warp % 4); `make_tmem_copy` gives
each of four warps its part.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from basedsl import DSLTypeError, Float32, Int32, TFloat32, Uint32, current_trace, mlir_type
from basedsl_cute import algebra
from basedsl_cute.algebra import CopyAtomLayout
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import CopyAtom, CopyOp, TiledCopy
from basedsl_cute.atoms.copy_instruction import check_elements
from basedsl_cute.dialect import define
from basedsl_cute.dialect.tensor_memory import WORDS, TmemLoad, TmemStore
from basedsl_cute.nvgpu.tcgen05.modes import Pack, Repetition, TmemLoadRedOp, Unpack
from basedsl_cute.tensors.pointer import recast_ptr, storage_bits
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vector_ops import bits_as
from basedsl_cute.tensors.vectorized_access import load_vector, store_vector


class _TmemCopy(CopyOp):
    """The base of loads and stores: `shape`, repeated along the columns."""

    takes_whole_tensors = True
    shape: ClassVar[str]
    is_store: ClassVar[bool]
    repeat: Repetition | int

    def __post_init__(self) -> None:
        most = algebra.TMEM_SHAPES[self.shape]
        if int(self.repeat) not in [int(n) for n in Repetition if n <= most]:
            raise DSLTypeError(
                f"{type(self).__name__} is repeated a power of two times up to {most}, not "
                f"{self.repeat}"
            )

    @property
    @abstractmethod
    def is_packed(self) -> bool:
        """True if registers of 32 bits hold two elements of 16."""

    @property
    @abstractmethod
    def packing(self) -> Pack | Unpack:
        """The choice that `is_packed` follows from."""

    def bits_layout(self) -> CopyAtomLayout:
        """The thread-value layouts of a warp in bits, with the places in tensor memory."""
        return algebra.tmem_copy_atom(self.shape, int(self.repeat), self.is_store, self.is_packed)

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        if self.is_packed and width != 16:
            raise DSLTypeError(f"{self} packs elements of 16 bits, not of {width}")
        return self.bits_layout().in_elements(width)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit all instructions that the tensors need; loads are complete behind them."""
        self._issue(atom, src, dst, pred, None)

    def _issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, reduced: Any) -> None:
        if pred is not None:
            raise DSLTypeError(f"{type(self).__name__} takes no pred: whole warps copy")
        tmem, registers = (dst, src) if self.is_store else (src, dst)
        if (tmem.memspace, registers.memspace) != ("tmem", "rmem"):
            raise DSLTypeError(
                f"{type(self).__name__} copies between tensor memory and registers",
                notes=((f"the source is {src}", None), (f"the destination is {dst}", None)),
            )
        steps = _steps(atom, tmem)
        count = len(steps) * WORDS[self.shape] * int(self.repeat)
        if int(algebra.size(registers.shape)) * storage_bits(atom.dtype) != 32 * count:
            raise DSLTypeError(
                f"{type(self).__name__}: {registers} is not {count} registers of 32 bits",
                notes=((f"tensor memory is {tmem}", None),),
                hint="make it of the shape that partition_D (of a load) or partition_S gives",
            )
        dtype = atom.dtype
        if dtype is TFloat32:  # 32 bits, of which the IR's type has 19
            dtype, registers = Float32, _as_float32(registers)
        trace = current_trace("a copy of tensor memory")
        ir, dialect = trace.ir, define(trace.bindings)
        word = ir.IntegerType.get_signless(32)
        common = {
            "address": tmem.pointer.llvm_ptr, "shape": self.shape, "repeat": int(self.repeat),
            "steps": steps, "packed": self.is_packed, "loc": trace.loc(),
        }  # fmt: skip
        if self.is_store:
            values = bits_as(load_vector(registers), word, count)
            TmemStore(dialect, values=values, **common)
            return
        element, n = mlir_type(dtype, ir), int(algebra.size(registers.shape))
        if reduced is None:
            loaded = TmemLoad(dialect, type=ir.VectorType.get([count], word), **common)
            store_vector(registers, bits_as(loaded.values, element, n))
            return
        made = TmemLoad(
            dialect, type=ir.VectorType.get([count + len(steps)], word),
            **common, **self.reduction(atom),
        )  # fmt: skip
        for tensor, first, number in ((registers, 0, count), (reduced, count, len(steps))):
            part = trace.emit(
                ir.Operation.create,
                "vector.extract_strided_slice",
                results=[ir.VectorType.get([number], word)],
                operands=[made.values],
                attributes={
                    key: ir.Attribute.parse(f"[{value} : i64]")
                    for key, value in (("offsets", first), ("sizes", number), ("strides", 1))
                },
            ).result
            store_vector(tensor, bits_as(part, element, number))

    def reduction(self, atom: CopyAtom) -> dict[str, Any]:
        """The attributes of a load by `atom` that reduces; by default none. Raises DSLTypeError for
        elements that it does not reduce.
        """
        return {}


def _as_float32(registers: Tensor) -> Tensor:
    return Tensor(recast_ptr(registers.iterator, dtype=Float32), registers.layout)


def _steps(atom: CopyAtom, tmem: Tensor) -> list[int]:
    """Return where each instruction begins, as a distance of addresses. Raises DSLTypeError for a
    tensor that is not whole instructions.
    """
    bits = atom.width
    n = int(algebra.size(atom.tv.layout_ref_tv, 1))
    layout = tmem.layout
    size = int(algebra.size(layout)) if algebra.is_static(layout.shape) else 0
    places = atom.tv.tmem
    assert places is not None
    if size == 0 or size % n or not layout.is_static:
        raise DSLTypeError(f"{atom.op}: {tmem} is no whole number of instructions of {n} elements")
    wanted = algebra.coalesce(algebra.upcast(places, bits))
    first = algebra.coalesce(algebra.composition(layout, algebra.Layout(n, 1)))
    if first != wanted:
        raise DSLTypeError(
            f"{atom.op} does not fit this tensor in tensor memory",
            notes=((f"one instruction is {wanted}, the tensor {tmem}", None),),
            hint="partition it by tcgen05.make_tmem_copy(atom, tensor).get_slice(thread)",
        )
    offsets = [int(layout(i)) for i in range(0, size, n)]
    return [algebra.tmem_address(0, offset, bits) for offset in offsets]


@dataclass(frozen=True)
class _Load(_TmemCopy):
    """The base of tcgen05.ld: `repeat` is the number of repetitions along the columns, 1 to 128,
    and `pack` says if a register holds 16 bits of two columns.
    """

    repeat: Repetition | int = Repetition.x1
    pack: Pack = Pack.NONE
    is_store: ClassVar[bool] = False

    @property
    def is_packed(self) -> bool:
        return self.pack is Pack.PACK_16b_IN_32b

    @property
    def packing(self) -> Pack:
        return self.pack


@dataclass(frozen=True)
class _Store(_TmemCopy):
    """The base of tcgen05.st: `repeat` is the number of repetitions along the columns, 1 to 128,
    and `unpack` says if a register is stored to two columns, 16 bits to each.
    """

    repeat: Repetition | int = Repetition.x1
    unpack: Unpack = Unpack.NONE
    is_store: ClassVar[bool] = True

    @property
    def is_packed(self) -> bool:
        return self.unpack is Unpack.UNPACK_32b_IN_16b

    @property
    def packing(self) -> Unpack:
        return self.unpack


class Ld32x32bOp(_Load):
    """The load of 32 lanes by 32 bits a repetition: a lane of tensor memory for each thread."""

    shape: ClassVar[str] = "32x32b"


_REDUCIBLE = {Float32: "f32", Int32: "s32", Uint32: "u32"}


@dataclass(frozen=True)
class _LoadAndReduce(_Load):
    """The base of loads with the reduction `redOp` of each thread's registers (sm_103f)."""

    redOp: TmemLoadRedOp = TmemLoadRedOp.MAX
    checks_itself = True

    def __init__(self, repeat: Repetition | int, redOp: Any = TmemLoadRedOp.MAX) -> None:
        for name, value in (("repeat", repeat), ("pack", Pack.NONE), ("redOp", redOp)):
            object.__setattr__(self, name, value)
        self.__post_init__()

    def reduction(self, atom: CopyAtom) -> dict[str, Any]:
        kind = _REDUCIBLE.get(atom.dtype)
        if kind is None or (kind != "f32" and "abs" in self.redOp.value) or int(self.repeat) < 2:
            raise DSLTypeError(
                f"{type(self).__name__} has no {self.redOp.name} of {int(self.repeat)} elements of "
                f"{atom.dtype.__name__}",
                hint="Float32 with all reductions, Int32 and Uint32 with MAX and MIN, from x2",
            )
        return {"reduction": self.redOp.value, "kind": kind}

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit the loads; `dst` is (registers, reduced)."""
        name = type(self).__name__
        if not (isinstance(dst, tuple | list) and len(dst) == 2):
            raise DSLTypeError(
                f"{name} copies to (registers, reduced), not to {dst}",
                hint="cute.copy(tiled_copy, source, (registers, reduced))",
            )
        registers, reduced = dst
        check_elements(src, registers, "cute.copy")
        check_elements(src, reduced, "cute.copy")
        count = len(_steps(atom, src))
        if reduced.memspace != "rmem" or int(algebra.size(reduced.shape)) != count:
            raise DSLTypeError(f"{name}: {reduced} is not {count} registers, one for each "
                               "instruction")  # fmt: skip
        self._issue(atom, src, registers, pred, reduced)


class LdRed32x32bOp(_LoadAndReduce):
    """The load as Ld32x32bOp with the reduction `redOp` of each thread's registers (sm_103f).

    The destination of a copy is (registers, reduced), where `reduced` has an element for each
    instruction: those of `repeat` columns, from 2. Elements are Float32, Int32 or Uint32; a number
    wins over NaN. Raises DSLTypeError for other arguments.
    """

    shape: ClassVar[str] = "32x32b"


class LdRed16x32bx2Op(_LoadAndReduce):
    """The load as Ld16x32bx2Op with the reduction `redOp` of each thread's registers (sm_103f).

    Threads 0 to 15 of a warp reduce the first `repeat` columns of their lanes, threads 16 to 31 the
    second; for the rest see `LdRed32x32bOp`.
    """

    shape: ClassVar[str] = "16x32bx2"


class Ld16x256bOp(_Load):
    """The load of 16 lanes by 256 bits a repetition: four threads share a lane, as in stmatrix."""

    shape: ClassVar[str] = "16x256b"


class Ld16x128bOp(_Load):
    """The load of 16 lanes by 128 bits a repetition."""

    shape: ClassVar[str] = "16x128b"


class Ld16x64bOp(_Load):
    """The load of 16 lanes by 64 bits a repetition."""

    shape: ClassVar[str] = "16x64b"


class Ld16x32bx2Op(_Load):
    """The load of 16 lanes by two pieces of 32 bits a repetition, for both halves of the warp."""

    shape: ClassVar[str] = "16x32bx2"


class St32x32bOp(_Store):
    """The store that mirrors Ld32x32bOp."""

    shape: ClassVar[str] = "32x32b"


class St16x256bOp(_Store):
    """The store that mirrors Ld16x256bOp."""

    shape: ClassVar[str] = "16x256b"


class St16x128bOp(_Store):
    """The store that mirrors Ld16x128bOp."""

    shape: ClassVar[str] = "16x128b"


class St16x64bOp(_Store):
    """The store that mirrors Ld16x64bOp."""

    shape: ClassVar[str] = "16x64b"


class St16x32bx2Op(_Store):
    """The store that mirrors Ld16x32bx2Op."""

    shape: ClassVar[str] = "16x32bx2"


def _tmem_op(atom: Any, caller: str) -> _TmemCopy:
    if not isinstance(atom, CopyAtom) or not isinstance(atom.op, _TmemCopy):
        raise DSLTypeError(f"{caller} takes the atom of a tcgen05.ld or st, got {atom}")
    return atom.op


@takes_location
def is_tmem_load(atom: CopyAtom) -> bool:
    """Return True for the atom of a load from tensor memory."""
    return isinstance(atom.op, _Load)


@takes_location
def is_tmem_store(atom: CopyAtom) -> bool:
    """Return True for the atom of a store to tensor memory."""
    return isinstance(atom.op, _Store)


@takes_location
def get_tmem_copy_properties(atom: CopyAtom) -> tuple[int, int, int, Pack | Unpack]:
    """Return (lanes, bits, repetitions, packing) of the atom of a load from or a store to tensor
    memory.

    Lanes and bits are those of the instruction's name, such as 16 and 256 of `16x256b`. Raises
    DSLTypeError for another atom.
    """
    op = _tmem_op(atom, "get_tmem_copy_properties")
    lanes, bits = op.shape.split("b")[0].split("x")
    return int(lanes), int(bits), int(op.repeat), op.packing


@takes_location
def make_tmem_copy(atom: CopyAtom, tmem_tensor: Tensor) -> TiledCopy:
    """Make the tiled copy of a tile in tensor memory by four warps, threads 0 to 127.

    `tmem_tensor` (M, N) is that tile; warps reach lanes by their number, so that thread 0 is lane 0
    of a warp whose number is a multiple of 4. Raises DSLTypeError for another atom or tensor.
    """
    op = _tmem_op(atom, "make_tmem_copy")
    if not isinstance(tmem_tensor, Tensor) or tmem_tensor.memspace != "tmem":
        raise DSLTypeError(f"make_tmem_copy takes a tensor in tensor memory, got {tmem_tensor}")
    if storage_bits(tmem_tensor.element_type) != atom.width:
        raise DSLTypeError(
            f"make_tmem_copy: the atom copies elements of {atom.width} bits, the tensor has "
            f"{tmem_tensor.element_type.__name__}"
        )
    tiling = algebra.make_tmem_copy(op.bits_layout(), atom.width, tmem_tensor.layout)
    return TiledCopy(atom, tiling)


@takes_location
def find_tmem_tensor_col_offset(tmem_tensor: Tensor) -> int:
    """Return the number of columns of 32 bits that `tmem_tensor`, a tensor in tensor memory,
    reaches from its start.
    """
    bits = storage_bits(tmem_tensor.element_type)
    return algebra.tmem_columns(tmem_tensor.layout, bits)
