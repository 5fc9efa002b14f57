"""Copies from shared to tensor memory: tcgen05.cp (PTX ISA, "tcgen05.cp").

One thread issues them, for a block or for both of a pair from the shared memory of each; they are
complete for its later tcgen05.mma in the order of issue, and for others as `commit` tells.

    atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.ONE), sf_dtype)
    copy = tcgen05.make_s2t_copy(atom, cute.filter_zeros(tSF))
    mine = copy.get_slice(0)
    source = tcgen05.get_s2t_smem_desc_tensor(copy, mine.partition_S(cute.filter_zeros(sSF)))
    target = mine.partition_D(cute.filter_zeros(tSF))
    cute.copy(copy, source[None, None, None, None, stage], target)
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, ClassVar

from basedsl import DSLTypeError, Int64
from basedsl_cute import algebra, arch
from basedsl_cute.algebra import CopyAtomLayout
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import CopyAtom, CopyOp, TiledCopy
from basedsl_cute.nvgpu.matrix_descriptor import DescriptorTensor
from basedsl_cute.nvgpu.tcgen05.modes import CtaGroup
from basedsl_cute.nvgpu.tcgen05.operands import descriptor_tensor
from basedsl_cute.tensors.pointer import storage_bits
from basedsl_cute.tensors.tensor import Tensor


class CpExpand(enum.Enum):
    """The expansion of elements by tcgen05.cp to a byte each: 16 elements of 4 or 6 bits lie packed
    at the beginning of each 16 bytes of shared memory, as TMA brings them for bytes.
    """

    NONE = ""
    B4X16_P64 = "b4x16_p64"
    B6X16_P32 = "b6x16_p32"


@dataclass(frozen=True)
class _Cp(CopyOp):
    """The base of tcgen05.cp: `cta_group` is the blocks whose tensor memory is written, and
    `expand` the expansion of narrow elements.
    """

    cta_group: CtaGroup = CtaGroup.ONE
    expand: CpExpand = CpExpand.NONE
    takes_whole_tensors = True
    checks_itself = True
    shape: ClassVar[str]

    def bits_layout(self) -> CopyAtomLayout:
        """The layouts of one instruction in bits, with the places in tensor memory."""
        return algebra.tmem_cp_atom(self.shape, int(self.cta_group))

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        return self.bits_layout().in_elements(width)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit an instruction for each coordinate of the modes behind the values of one."""
        name = type(self).__name__
        if pred is not None or fields:
            raise DSLTypeError(f"{name} takes no pred and no further arguments")
        if not isinstance(src, DescriptorTensor):
            raise DSLTypeError(
                f"{name} copies from descriptors of shared memory, not from {src}",
                hint="tcgen05.get_s2t_smem_desc_tensor(copy, partition of shared memory)",
            )
        if not isinstance(dst, Tensor) or dst.memspace != "tmem":
            raise DSLTypeError(f"{name} copies to tensor memory, not to {dst}")
        sources, targets = _steps(src.layout), _steps(dst.layout)
        if len(sources) != len(targets):
            raise DSLTypeError(
                f"{name}: the source is {len(sources)} instruction(s), the destination "
                f"{len(targets)}",
                notes=((f"the source is {src}", None), (f"the destination is {dst}", None)),
                hint="choose a stage: source[None, None, None, None, stage]",
            )
        with arch.elect_one():
            for source, target in zip(sources, targets, strict=True):
                arch.tcgen05_cp(
                    self.shape,
                    dst.pointer.moved(target),
                    src.start + Int64(source),
                    cta_group=self.cta_group,
                    source_format=self.expand.value,
                )


def _steps(layout: Any) -> list[int]:
    """Return where each instruction of a partition begins; mode 0 is (values of one, repeats)."""
    first = layout[0]
    repeats = first[1] if algebra.rank(first) > 1 else algebra.make_layout(1)
    found: list[int] = []
    rest = algebra.make_layout((repeats, *(layout[i] for i in range(1, algebra.rank(layout)))))
    for i in range(int(algebra.size(rest))):
        at = rest(i)
        if type(at) is not int:
            raise DSLTypeError("tcgen05.cp takes partitions of static layouts")
        found.append(at)
    return found


class Cp128x256bOp(_Cp):
    """The copy of 128 lanes by 256 bits."""

    shape: ClassVar[str] = "128x256b"


class Cp128x128bOp(_Cp):
    """The copy of 128 lanes by 128 bits."""

    shape: ClassVar[str] = "128x128b"


class Cp4x256bOp(_Cp):
    """The copy of 4 rows of 256 bits, to the first lane of each quarter."""

    shape: ClassVar[str] = "4x256b"


class Cp4x32x128bOp(_Cp):
    """The copy of 32 rows of 128 bits to all four quarters of the lanes, as scale factors need."""

    shape: ClassVar[str] = "4x32x128b"


class Cp2x64x128b0213Op(_Cp):
    """The copy of 64 rows of 128 bits to the quarters 0 and 1, and again to 2 and 3."""

    shape: ClassVar[str] = "2x64x128b_0213"


class Cp2x64x128b0123Op(_Cp):
    """The copy of 32 rows of 128 bits to the quarters 0 and 1, and of 32 further to 2 and 3."""

    shape: ClassVar[str] = "2x64x128b_0123"


def _cp_of(atom: Any, what: str) -> _Cp:
    op = atom.op if isinstance(atom, CopyAtom | TiledCopy) else None
    if not isinstance(op, _Cp):
        raise DSLTypeError(f"{what} takes the atom of a tcgen05.cp, got {atom}")
    return op


@takes_location
def make_s2t_copy(atom: CopyAtom, tmem_tensor: Tensor) -> TiledCopy:
    """Make the tiled copy of tcgen05.cp into a tile in tensor memory.

    Its "threads" are the blocks of the group, which copy the same: use `get_slice(0)`.
    `tmem_tensor` has no mode of stride 0 (`cute.filter_zeros`). Raises DSLTypeError for another
    atom or tensor, LayoutError if the instruction does not fit the tile.
    """
    op = _cp_of(atom, "make_s2t_copy")
    if not isinstance(tmem_tensor, Tensor) or tmem_tensor.memspace != "tmem":
        raise DSLTypeError(f"make_s2t_copy takes a tensor in tensor memory, got {tmem_tensor}")
    width = storage_bits(tmem_tensor.element_type)
    if width != atom.width:
        raise DSLTypeError(
            f"make_s2t_copy: the atom copies elements of {atom.width} bits, the tensor has "
            f"{tmem_tensor.element_type.__name__}"
        )
    return TiledCopy(atom, algebra.make_cp_copy(op.bits_layout(), width, tmem_tensor.layout))


@takes_location
def get_s2t_smem_desc_tensor(tiled_copy: TiledCopy, smem_tensor: Tensor) -> DescriptorTensor:
    """Return the descriptors of `smem_tensor`, what `get_slice(0).partition_S` of `tiled_copy`
    gives of shared memory.

    Modes behind the values of one instruction stay as they are. Raises DSLTypeError for other
    memory, and for a layout without rows of 16 bytes in the order of the lanes.
    """
    op = _cp_of(tiled_copy, "get_s2t_smem_desc_tensor")
    if not isinstance(smem_tensor, Tensor) or smem_tensor.memspace != "smem":
        raise DSLTypeError(f"a tcgen05.cp reads shared memory, not {smem_tensor}")
    width = storage_bits(smem_tensor.element_type)
    layout = smem_tensor.layout
    try:
        found, steps = algebra.cp_descriptors(op.bits_layout(), layout, width)
    except algebra.LayoutError as error:
        raise DSLTypeError(
            f"{type(op).__name__} cannot read {smem_tensor}", notes=((str(error), None),)
        ) from error
    values = steps[0]
    repeats = values[1] if algebra.rank(values) > 1 else algebra.make_layout(1, stride=0)
    one = algebra.make_layout((algebra.make_layout(1, stride=0), repeats))
    modes = (one, *(steps[i] for i in range(1, algebra.rank(steps))))
    return descriptor_tensor(smem_tensor.pointer, found, algebra.make_layout(modes))
