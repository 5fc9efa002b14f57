"""Tensor maps in memory that a kernel makes and changes: PTX ISA 9.7.9.28, "tensormap.replace"
(sm_90a), and 9.7.13.5, "fence.proxy.tensormap". A map has 128 bytes at a multiple of 128 (64 in
shared memory).
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, Int64, as_numeric
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.arch.indices import lane_idx
from basedsl_cute.dialect import define
from basedsl_cute.dialect.tensor_map import TensormapRelease, TensormapReplace
from basedsl_cute.hardware.tensor_map_format import BYTES
from basedsl_cute.host.tensor_map_argument import TensorMapValue
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.pointer import Pointer


def copy_tensor_map(tensor_map: TensorMapValue, ptr: Pointer) -> None:
    """Copy a tensor map to `ptr`, in shared or global memory, by one warp: 4 bytes a lane."""
    what = "copy_tensormap()"
    target = tensor_map_address(ptr, what)
    lane = lane_idx().ir_value()
    words = {"elem_type": "i32", "rawConstantIndices": "array<i32: -2147483648>"}
    source = tensor_map.ir_value()
    here = [
        emit_op(what, "llvm.getelementptr", [base, lane], [str(base.type)], words).result
        for base in (source, target)
    ]
    aligned = {"alignment": "4 : i64"}
    word = emit_op(what, "llvm.load", [here[0]], ["i32"], aligned).result
    emit_op(what, "llvm.store", [word, here[1]], attributes=aligned)


def replace_address(ptr: Pointer, address: Any) -> None:
    """Change the start address of the map's tensor to `address`."""
    _replace(ptr, "global_address", as_numeric(address).to(Int64).ir_value(), 0)


def replace_extent(ptr: Pointer, mode: int, extent: Any) -> None:
    """Change the extent of mode `mode` of the map's tensor to `extent` elements."""
    _replace(ptr, "global_dim", as_numeric(extent).to(Int32).ir_value(), mode)


def replace_stride(ptr: Pointer, mode: int, nbytes: Any) -> None:
    """Change the stride of mode `mode`, from 1, of the map's tensor to `nbytes` bytes."""
    _replace(ptr, "global_stride", as_numeric(nbytes).to(Int64).ir_value(), mode - 1)


def _replace(ptr: Pointer, field: str, value: Any, ordinal: int) -> None:
    what = "update_tma_descriptor()"
    trace = in_kernel(what)
    trace.emit(
        TensormapReplace,
        define(trace.bindings),
        map=tensor_map_address(ptr, what),
        value=value,
        field=field,
        ordinal=ordinal,
    )


@takes_location
def fence_tma_desc_release() -> None:
    """Release this thread's writes to tensor maps in global memory to the threads that acquire
    them.

    PTX `fence.proxy.tensormap::generic.release.gpu`; `fence_tma_desc_acquire` is the other side.
    """
    attributes = {
        "scope": "#nvvm.mem_scope<gpu>",
        "fromProxy": "#nvvm.proxy_kind<generic>",
        "toProxy": "#nvvm.proxy_kind<tensormap>",
    }
    emit_op("fence_tma_desc_release()", "nvvm.fence.proxy.release", attributes=attributes)


@takes_location
def cp_fence_tma_desc_release(gmem_ptr: Pointer, smem_ptr: Pointer) -> None:
    """Copy a tensor map from `smem_ptr` in shared memory to `gmem_ptr` in global memory, and
    release it there, by one warp.

    PTX `tensormap.cp_fenceproxy`; `fence_tma_desc_acquire` is the other side.
    """
    what = "cp_fence_tma_desc_release()"
    trace = in_kernel(what)
    trace.emit(
        TensormapRelease,
        define(trace.bindings),
        target=tensor_map_address(gmem_ptr, what, "gmem"),
        source=tensor_map_address(smem_ptr, what, "smem"),
    )


@takes_location
def fence_tma_desc_acquire(ptr: Pointer) -> None:
    """Have this thread's TMA copies by the tensor map at `ptr` in global memory use what was
    released.

    PTX `fence.proxy.tensormap::generic.acquire.gpu`.
    """
    what = "fence_tma_desc_acquire()"
    address = generic_address(tensor_map_address(ptr, what, "gmem"), what)
    attributes = {
        "scope": "#nvvm.mem_scope<gpu>",
        "fromProxy": "#nvvm.proxy_kind<generic>",
        "toProxy": "#nvvm.proxy_kind<tensormap>",
    }
    emit_op(what, "nvvm.fence.proxy.acquire", [address, i32(BYTES)], attributes=attributes)


def tensor_map_address(ptr: Any, what: str, space: str | None = None) -> Any:
    """Return the address of a tensor map in memory; DSLTypeError for other pointers."""
    spaces = ("gmem", "smem") if space is None else (space,)
    if not isinstance(ptr, Pointer) or ptr.space not in spaces:
        raise DSLTypeError(
            f"{what} takes a pointer to a tensor map in {' or '.join(spaces)}, got {ptr}"
        )
    return ptr.llvm_ptr


def generic_address(address: Any, what: str) -> Any:
    """Return an address as a generic one."""
    if str(address.type) == "!llvm.ptr":
        return address
    return emit_op(what, "llvm.addrspacecast", [address], ["!llvm.ptr"]).result
