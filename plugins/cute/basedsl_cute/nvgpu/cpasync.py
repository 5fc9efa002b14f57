"""`nvgpu.cpasync`: copies past the registers: cp.async (PTX ISA 9.7.9.25.3, sm_80), bulk copies,
TMA.

cp.async copies are complete after `cute.arch.cp_async_commit_group` and `cp_async_wait_group`, and
visible to other threads after a barrier. The copies of the TMA unit are in `nvgpu.tma` and
`nvgpu.bulk`, and named here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from basedsl import DSLTypeError, Int32, Int64
from basedsl_cute.algebra import CopyAtomLayout
from basedsl_cute.arch.emit import emit_op
from basedsl_cute.atoms.copy import CopyAtom, CopyOp
from basedsl_cute.atoms.copy_instruction import emit_copy, predicated
from basedsl_cute.dialect import define
from basedsl_cute.dialect.cluster import DsmemStore
from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.nvgpu.bulk import CopyBulkG2SOp, CopyBulkS2GOp
from basedsl_cute.nvgpu.common import LoadCacheMode, _no_fields, thread_layout
from basedsl_cute.nvgpu.tma import (
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileGather4G2SMulticastOp,
    CopyBulkTensorTileGather4G2SOp,
    CopyBulkTensorTileS2GOp,
    CopyBulkTensorTileScatter4S2GOp,
    CopyReduceBulkTensorTileS2GOp,
    TmaInfo,
    copy_tensormap,
    cp_fence_tma_desc_release,
    create_tma_multicast_mask,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    make_tiled_tma_atom,
    prefetch_descriptor,
    tma_partition,
    update_tma_descriptor,
)
from basedsl_cute.nvgpu.tma_im2col import (
    CopyBulkTensorIm2ColG2SMulticastOp,
    CopyBulkTensorIm2ColG2SOp,
    CopyBulkTensorIm2ColS2GOp,
    make_im2col_tma_atom,
)
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.make_tensor import recast_tensor
from basedsl_cute.tensors.tensor_ssa import ReductionOp

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)

__all__ = [
    "CopyBulkG2SOp",
    "CopyBulkS2GOp",
    "CopyBulkTensorIm2ColG2SMulticastOp",
    "CopyBulkTensorIm2ColG2SOp",
    "CopyBulkTensorIm2ColS2GOp",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileGather4G2SMulticastOp",
    "CopyBulkTensorTileGather4G2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyBulkTensorTileScatter4S2GOp",
    "CopyDsmemStoreOp",
    "CopyG2SOp",
    "CopyReduceBulkTensorTileS2GOp",
    "LoadCacheMode",
    "ReductionKind",
    "ReductionOp",
    "TmaInfo",
    "copy_tensormap",
    "cp_fence_tma_desc_release",
    "create_tma_multicast_mask",
    "fence_tma_desc_acquire",
    "fence_tma_desc_release",
    "make_im2col_tma_atom",
    "make_tiled_tma_atom",
    "prefetch_descriptor",
    "tma_partition",
    "update_tma_descriptor",
]

ReductionKind = ReductionOp


@dataclass(frozen=True)
class CopyG2SOp(CopyOp):
    """The copy from global to shared memory past the registers, of 4, 8 or 16 bytes (PTX
    `cp.async`).

    - `cache_mode`: `LoadCacheMode.ALWAYS`, or `GLOBAL`, which bypasses the L1 cache (16 bytes
      only).
    - `zero_fill`: write zeros where a predicate is false; else nothing is copied there.

    Needs sm_80. `make_copy_atom` raises DSLTypeError for other sizes and cache modes.
    """

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    zero_fill: bool = False

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of one thread; DSLTypeError for sizes and cache modes that cp.async
        lacks.
        """
        moved = bits or width
        if moved not in (32, 64, 128):
            raise DSLTypeError(f"cp.async copies 32, 64 or 128 bits, not {moved}")
        if self.cache_mode not in (LoadCacheMode.ALWAYS, LoadCacheMode.GLOBAL):
            raise DSLTypeError(
                f"cp.async has the cache modes ALWAYS and GLOBAL, not {self.cache_mode}"
            )
        if self.cache_mode is LoadCacheMode.GLOBAL and moved != 128:
            raise DSLTypeError(f"cp.async with LoadCacheMode.GLOBAL copies 128 bits, not {moved}")
        return thread_layout(width, bits)

    def issue(self, atom: CopyAtom, src: Any, dst: Any, pred: Any, **fields: Any) -> None:
        """Emit one cp.async; DSLTypeError for other memories."""
        _no_fields(self, fields)
        if src.memspace != "gmem" or dst.memspace != "smem":
            raise DSLTypeError(
                f"cp.async copies gmem to smem, not {src.memspace} to {dst.memspace}"
            )
        bits = atom.num_bits or atom.width
        cache, name = self.cache_mode.value, f"cp.async of {bits} bits"
        if pred is not None and self.zero_fill:
            emit_copy(src, dst, bits, pred, atom="cp_async", cache=cache, name=name)
            return
        with predicated(pred):
            emit_copy(src, dst, bits, atom="cp_async", cache=cache, name=name)


@dataclass(frozen=True)
class CopyDsmemStoreOp(CopyOp):
    """The store of 32, 64 or 128 bits from registers into another block of the cluster (sm_90).

    PTX `st.async`: its bytes count at `mbar_ptr=`, an mbarrier of that block. The target and the
    mbarrier come from `cute.arch.map_dsmem_ptr`.
    """

    def layout(self, width: int, bits: int | None) -> CopyAtomLayout:
        """Return the layouts of one thread; DSLTypeError for other sizes."""
        moved = bits or width
        if moved not in _DSMEM_WORDS:
            raise DSLTypeError(f"CopyDsmemStoreOp stores 32, 64 or 128 bits, not {moved}")
        return thread_layout(width, bits)

    def issue(
        self, atom: CopyAtom, src: Any, dst: Any, pred: Any, *, mbar_ptr: Any = None, **fields: Any
    ) -> None:
        """Emit one st.async; DSLTypeError for other memories or without an mbarrier of the target
        block.
        """
        _no_fields(self, fields)
        if src.memspace != "rmem" or dst.memspace != "dsmem":
            raise DSLTypeError(
                f"CopyDsmemStoreOp stores rmem to dsmem, not {src.memspace} to {dst.memspace}",
                hint="map the target: cute.arch.map_dsmem_ptr(pointer, block of the cluster)",
            )
        if getattr(mbar_ptr, "space", None) != "dsmem":
            raise DSLTypeError(
                "CopyDsmemStoreOp needs an mbarrier of the block that it stores into: mbar_ptr=",
                hint="cute.arch.map_dsmem_ptr(barrier, block of the cluster)",
            )
        bits = atom.num_bits or atom.width
        if dst.iterator.alignment * 8 < bits:
            raise DSLTypeError(f"{dst} is not known to be aligned to {bits // 8} bytes")
        dtype, count = _DSMEM_WORDS[bits]
        words = [recast_tensor(src, dtype)[i].ir_value() for i in range(count)]
        what = "CopyDsmemStoreOp"
        value = words[0]
        if count > 1:
            value = emit_op(what, "vector.from_elements", words, ["vector<4xi32>"]).result
        target, barrier = dst.iterator.llvm_ptr, mbar_ptr.llvm_ptr
        with predicated(pred):
            trace = in_kernel(what)
            trace.emit(
                DsmemStore, define(trace.bindings), target=target, barrier=barrier, value=value
            )


_DSMEM_WORDS = {32: (Int32, 1), 64: (Int64, 1), 128: (Int32, 4)}
