"""Bulk copies of contiguous memory, without a tensor map: PTX ISA 9.7.9.25.4 "cp.async.bulk"
(sm_90).

Each thread that calls one issues it, so one thread calls it (`cute.arch.elect_one()`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute import algebra
from basedsl_cute.algebra import CopyAtomLayout
from basedsl_cute.arch.bulk import bulk_load, bulk_store
from basedsl_cute.atoms.copy import CopyAtom, CopyOp
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.nvgpu.common import _no_fields, thread_layout
from basedsl_cute.tensors.tensor import Tensor

_UNIT = 16  # bytes: of the size and of both addresses


@dataclass(frozen=True)
class CopyBulkG2SOp(CopyOp):
    """The bulk copy of a contiguous tensor from global to shared memory (PTX `cp.async.bulk`,
    sm_90).

    `cute.copy` with it takes `mbar_ptr=`, an mbarrier of the block that the bytes complete. Both
    addresses and the size are multiples of 16 bytes (DSLTypeError otherwise). One thread issues
    it.
    """

    takes_whole_tensors = True

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of one thread."""
        return thread_layout(width, bits)

    def issue(
        self, atom: CopyAtom, src: Any, dst: Any, pred: Any, *, mbar_ptr: Any = None, **fields: Any
    ) -> None:
        """Emit one bulk load of whole tensors."""
        _no_fields(self, fields)
        _check_spaces(self, src, dst, "gmem", "smem")
        if mbar_ptr is None:
            raise DSLTypeError("CopyBulkG2SOp needs the mbarrier that it completes: mbar_ptr=")
        size = _common_bytes(self, src, dst)
        with predicated(pred):
            bulk_load(dst.iterator, src.iterator, size, mbar_ptr)


@dataclass(frozen=True)
class CopyBulkS2GOp(CopyOp):
    """The bulk copy of a contiguous tensor from shared to global memory (PTX `cp.async.bulk`,
    sm_90).

    It belongs to the thread's bulk group: see `cute.arch.cp_async_bulk_commit_group`. Both
    addresses and the size are multiples of 16 bytes (DSLTypeError otherwise). One thread issues
    it.
    """

    takes_whole_tensors = True

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of one thread."""
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one bulk store of whole tensors."""
        _no_fields(self, fields)
        _check_spaces(self, src, dst, "smem", "gmem")
        size = _common_bytes(self, src, dst)
        with predicated(pred):
            bulk_store(dst.iterator, src.iterator, size)


def _check_spaces(op: CopyOp, src: Tensor, dst: Tensor, source: str, target: str) -> None:
    if (src.memspace, dst.memspace) != (source, target):
        raise DSLTypeError(
            f"{type(op).__name__} copies {source} to {target}, not {src.memspace} to {dst.memspace}"
        )


def _common_bytes(op: CopyOp, src: Tensor, dst: Tensor) -> Any:
    """Return the size of both tensors in bytes; DSLTypeError unless they are contiguous and
    aligned.
    """
    name = type(op).__name__
    for tensor in (src, dst):
        if not _is_contiguous(tensor):
            raise DSLTypeError(
                f"{name} copies contiguous memory, and this tensor is not",
                notes=((f"the tensor is {tensor}", None),),
                hint="for tiles of matrices there is TMA: cpasync.make_tiled_tma_atom",
            )
        if tensor.iterator.alignment % _UNIT:
            raise DSLTypeError(
                f"{name} needs memory known to be aligned to {_UNIT} bytes, not only to "
                f"{tensor.iterator.alignment}",
                notes=((f"the tensor is {tensor}", None),),
                hint="from_dlpack(x, assumed_align=16), byte_alignment=, or pointer.align(16)",
            )
    elements = [algebra.size(tensor.shape) for tensor in (src, dst)]
    if all(type(n) is int for n in elements) and elements[0] != elements[1]:
        raise DSLTypeError(f"{name}: the source {src} and the target {dst} differ in size")
    known = next((n for n in elements if type(n) is int), elements[0])
    bits = known * src.element_type.width
    if type(bits) is int and bits % (8 * _UNIT):
        raise DSLTypeError(f"{name} copies multiples of {_UNIT} bytes, not {bits // 8}")
    return bits // 8


def _is_contiguous(tensor: Tensor) -> bool:
    if isinstance(tensor.layout, algebra.ComposedLayout) or tensor.iterator.is_swizzled:
        return False
    flat = algebra.flatten(algebra.coalesce(tensor.layout))
    if algebra.rank(flat) != 1:
        return False
    stride = flat.stride[0] if isinstance(flat.stride, tuple) else flat.stride
    return bool(type(stride) is int and stride == 1) or algebra.size(flat) == 1
