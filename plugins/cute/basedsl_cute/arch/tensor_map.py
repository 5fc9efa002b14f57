"""Tensor maps in memory that a kernel makes and changes: PTX ISA 9.7.9.28, "tensormap.replace", and
9.7.13.5, "fence.proxy.tensormap". A map has 128 bytes at a multiple of 128 (64 in shared memory).
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int32, Int64, as_numeric
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.arch.indices import in_kernel, lane_idx
from basedsl_cute.dialect import define
from basedsl_cute.dialect.tensor_map import TensormapRelease, TensormapReplace
from basedsl_cute.hardware.tensor_map_format import BYTES
from basedsl_cute.host.tensor_map_argument import TensorMapValue
from basedsl_cute.tensors.pointer import Pointer


def copy_tensor_map(tensor_map: TensorMapValue, ptr: Pointer) -> None:
    """A warp copies a tensor map to `ptr`, in shared or global memory: 4 bytes a lane."""
    what = "copy_tensormap()"
    target = map_place(ptr, what)
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
    """The map's tensor begins at `address`."""
    _replace(ptr, "global_address", as_numeric(address).to(Int64).ir_value(), 0)


def replace_extent(ptr: Pointer, mode: int, extent: Any) -> None:
    """Mode `mode` of the map's tensor has `extent` elements."""
    _replace(ptr, "global_dim", as_numeric(extent).to(Int32).ir_value(), mode)


def replace_stride(ptr: Pointer, mode: int, nbytes: Any) -> None:
    """Elements that follow in mode `mode`, from 1, are `nbytes` apart."""
    _replace(ptr, "global_stride", as_numeric(nbytes).to(Int64).ir_value(), mode - 1)


def _replace(ptr: Pointer, field: str, value: Any, ordinal: int) -> None:
    what = "update_tma_descriptor()"
    trace = in_kernel(what)
    trace.emit(
        TensormapReplace,
        define(trace.bindings),
        map=map_place(ptr, what),
        value=value,
        field=field,
        ordinal=ordinal,
    )


def fence_tma_desc_release() -> None:
    """What this thread wrote to tensor maps in global memory is seen by those who acquire them."""
    attributes = {
        "scope": "#nvvm.mem_scope<gpu>",
        "fromProxy": "#nvvm.proxy_kind<generic>",
        "toProxy": "#nvvm.proxy_kind<tensormap>",
    }
    emit_op("fence_tma_desc_release()", "nvvm.fence.proxy.release", attributes=attributes)


def cp_fence_tma_desc_release(gmem_ptr: Pointer, smem_ptr: Pointer) -> None:
    """A warp copies a tensor map from shared to global memory, for those who acquire it there."""
    what = "cp_fence_tma_desc_release()"
    trace = in_kernel(what)
    trace.emit(
        TensormapRelease,
        define(trace.bindings),
        target=map_place(gmem_ptr, what, "gmem"),
        source=map_place(smem_ptr, what, "smem"),
    )


def fence_tma_desc_acquire(ptr: Pointer) -> None:
    """Copies by the tensor map at `ptr` in global memory use what was released there."""
    what = "fence_tma_desc_acquire()"
    address = generic(map_place(ptr, what, "gmem"), what)
    attributes = {
        "scope": "#nvvm.mem_scope<gpu>",
        "fromProxy": "#nvvm.proxy_kind<generic>",
        "toProxy": "#nvvm.proxy_kind<tensormap>",
    }
    emit_op(what, "nvvm.fence.proxy.acquire", [address, i32(BYTES)], attributes=attributes)


def map_place(ptr: Any, what: str, space: str | None = None) -> Any:
    """The address of a tensor map in memory."""
    spaces = ("gmem", "smem") if space is None else (space,)
    if not isinstance(ptr, Pointer) or ptr.space not in spaces:
        raise DSLTypeError(
            f"{what} takes a pointer to a tensor map in {' or '.join(spaces)}, got {ptr}"
        )
    return ptr.llvm_ptr


def generic(address: Any, what: str) -> Any:
    """An address as a generic one."""
    if str(address.type) == "!llvm.ptr":
        return address
    return emit_op(what, "llvm.addrspacecast", [address], ["!llvm.ptr"]).result
