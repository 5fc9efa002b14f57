"""Tensor copies of the TMA unit, one instruction each: PTX ISA 9.7.9.27.1, "cp.async.bulk.tensor".

Coordinates count elements of the whole tensor, mode 0 contiguous; the box comes from the tensor
map, which is a kernel's parameter or lies in global memory. Elements outside the tensor read as
zero and are not written. One thread issues a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import DSLTypeError, Int16, Int64, as_numeric
from basedsl_cute.arch.cluster import block_idx_in_cluster, map_address
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.arch.tensor_map import generic_address, tensor_map_address
from basedsl_cute.dialect.attributes import UNBOUND_BYTES
from basedsl_cute.host.tensor_map_argument import TensorMapValue
from basedsl_cute.tensors.pointer import Pointer

GATHER4 = "#nvvm.tma_load_mode<tile_gather4>"
IM2COL = "#nvvm.tma_load_mode<im2col>"
IM2COL_STORE = "#nvvm.tma_store_mode<im2col>"
SCATTER4 = "#nvvm.tma_store_mode<tile_scatter4>"
TMA_LOAD = "nvvm.cp.async.bulk.tensor.shared.cluster.global"
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def tma_load(
    tensor_map: TensorMapValue | Pointer,
    smem_ptr: Any,
    mbar_ptr: Any,
    coordinates: Sequence[Any],
    *,
    mcast_mask: Any = None,
    cache_hint: Any = None,
    nbytes: int = 0,
    blocks: int = 1,
    mode: str | None = None,
    offsets: Sequence[Any] = (),
) -> None:
    """Copy a box from global to shared memory; its bytes count at the mbarrier when they land.

    With `mcast_mask` the box lands in the same place of each block of the cluster whose bit is
    set, and counts at that block's mbarrier. Without `mbar_ptr` the loop around it, which has
    `prefetch_stages=`, waits for the `nbytes` of the box. With 2 `blocks` the bytes count at the
    mbarrier of the even block of a pair (PTX `.cta_group::2`).
    In `mode` `GATHER4` the coordinates are a column and four rows. In `IM2COL` they are those of a
    channel, of the first pixel and its image, and `offsets` the filter's in each spatial mode.
    """
    what = "a TMA load"
    target = shared_address(smem_ptr, what)
    # sm_100 and sm_120 gather into a block's own memory only, their families into the cluster's.
    is_own = mode == GATHER4 and blocks == 1 and mcast_mask is None
    if not is_own:
        # A block's own shared memory has the same addresses in the cluster's window.
        number = emit_op(what, "llvm.ptrtoint", [target], ["i32"]).result
        target = emit_op(what, "llvm.inttoptr", [number], ["!llvm.ptr<7>"]).result
    operands = [target, _map(tensor_map), *_coordinates(coordinates)]
    if mbar_ptr is None:
        operands.append(emit_op(what, "llvm.mlir.zero", [], ["!llvm.ptr<3>"]).result)
    elif blocks == 2:
        operands.append(_at_even_block(mbar_ptr, what))
    else:
        operands.append(shared_address(mbar_ptr, what))
    operands += [as_numeric(x).to(Int16).ir_value() for x in offsets]
    if mcast_mask is not None:
        operands.append(as_numeric(mcast_mask).to(Int16).ir_value())
    if cache_hint is not None:
        operands.append(as_numeric(cache_hint).to(Int64).ir_value())
    segments = [1, 1, len(coordinates), 1, len(offsets), int(mcast_mask is not None)]
    segments += [int(cache_hint is not None), 0]
    attributes = _segments(segments)
    if mbar_ptr is None:
        attributes[UNBOUND_BYTES] = f"{nbytes} : i64"
    if blocks == 2:
        attributes["group"] = "#nvvm.cta_group<cta_2>"
    if mode is not None:
        attributes |= {"mode": mode, "isCTAOnly": "true" if is_own else "false"}
    emit_op(what, TMA_LOAD, operands, attributes=attributes)


def _at_even_block(mbar_ptr: Any, what: str) -> Any:
    """Return the address of the same mbarrier in the even block of this block's pair."""
    even = block_idx_in_cluster() & ~1
    mapped = map_address(shared_address(mbar_ptr, what), even, what)
    number = emit_op(what, "llvm.ptrtoint", [mapped], ["i64"]).result
    return emit_op(what, "llvm.inttoptr", [number], ["!llvm.ptr<3>"]).result


def tma_store(
    tensor_map: TensorMapValue | Pointer,
    smem_ptr: Any,
    coordinates: Sequence[Any],
    *,
    cache_hint: Any = None,
    mode: str | None = None,
) -> None:
    """Copy a box from shared to global memory, as part of this thread's bulk group; in `mode`
    `SCATTER4` the coordinates are a column and four rows, in `IM2COL_STORE` those of a channel, of
    the first pixel and its image.
    """
    what = "a TMA store"
    operands = [_map(tensor_map), shared_address(smem_ptr, what), *_coordinates(coordinates)]
    if cache_hint is not None:
        operands.append(as_numeric(cache_hint).to(Int64).ir_value())
    segments = [1, 1, len(coordinates), int(cache_hint is not None), 0]
    attributes = _segments(segments)
    if mode is not None:
        attributes["mode"] = mode
    name = "nvvm.cp.async.bulk.tensor.global.shared.cta"
    emit_op(what, name, operands, attributes=attributes)


def tma_reduce(
    tensor_map: TensorMapValue | Pointer,
    smem_ptr: Any,
    coordinates: Sequence[Any],
    kind: str = "add",
) -> None:
    """Combine a box of shared memory into global memory, as part of this thread's bulk group."""
    what = "a TMA reduction"
    if kind not in REDUCTIONS:
        raise DSLTypeError(f"{kind!r} is no reduction; there are {', '.join(REDUCTIONS)}")
    operands = [_map(tensor_map), shared_address(smem_ptr, what), *_coordinates(coordinates)]
    attributes = _segments([1, 1, len(coordinates), 0])
    attributes["redKind"] = f"#nvvm.tma_redux_kind<{kind}>"
    emit_op(what, "nvvm.cp.async.bulk.tensor.reduce", operands, attributes=attributes)


def tma_prefetch(
    tensor_map: TensorMapValue | Pointer,
    coordinates: Sequence[Any],
    *,
    mode: str | None = None,
    offsets: Sequence[Any] = (),
) -> None:
    """Load a box of global memory into the L2 cache (`cp.async.bulk.prefetch.tensor`); `mode` and
    `offsets` are as for `tma_load`.
    """
    what = "a TMA prefetch"
    operands = [_map(tensor_map), *_coordinates(coordinates)]
    operands += [as_numeric(x).to(Int16).ir_value() for x in offsets]
    attributes = _segments([1, len(coordinates), len(offsets), 0])
    if mode is not None:
        attributes["mode"] = mode
    emit_op(what, "nvvm.cp.async.bulk.tensor.prefetch", operands, attributes=attributes)


def prefetch_tensor_map(tensor_map: TensorMapValue | Pointer) -> None:
    """Load the tensor map into the descriptor cache before its first use (`prefetch.tensormap`)."""
    what = "prefetch_descriptor()"
    attributes = {"tensormap": "unit"}
    emit_op(what, "nvvm.prefetch", [_map(tensor_map)], attributes=attributes)


def _segments(sizes: list[int]) -> dict[str, str]:
    return {"operandSegmentSizes": f"array<i32: {', '.join(map(str, sizes))}>"}


def _coordinates(coordinates: Sequence[Any]) -> list[Any]:
    if not 1 <= len(coordinates) <= 5:
        raise DSLTypeError(f"a TMA copy has 1 to 5 coordinates, not {len(coordinates)}")
    return [i32(x) for x in coordinates]


def _map(tensor_map: Any) -> Any:
    """Return the generic address of a tensor map: a kernel's parameter, or in global memory."""
    if isinstance(tensor_map, TensorMapValue):
        return tensor_map.ir_value()
    what = "tma_desc_ptr="
    return generic_address(tensor_map_address(tensor_map, what, "gmem"), what)
