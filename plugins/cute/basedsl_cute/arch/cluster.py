"""Clusters: their barrier, a block's place in its own, shared memory of the other blocks.

PTX ISA 9.7.13.4 "barrier.cluster", 9.7.9.23 "mapa", and the special registers `%cluster_*`.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.arch.indices import read_register
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import MakeMemRef
from basedsl_cute.tensors.pointer import RUN, Pointer, memref_type

_ALIGNED = {"aligned": "unit"}


def _triple(register: str, what: str) -> tuple[Any, Any, Any]:
    x, y, z = (read_register(f"{register}.{axis}", what) for axis in "xyz")
    return x, y, z


def cluster_idx() -> tuple[Any, Any, Any]:
    """The cluster's (x, y, z) in the grid."""
    return _triple("clusterid", "cluster_idx()")


def cluster_dim() -> tuple[Any, Any, Any]:
    """Clusters of the grid in x, y, z."""
    return _triple("nclusterid", "cluster_dim()")


def cluster_size() -> Any:
    """Blocks of a cluster."""
    return read_register("cluster.nctarank", "cluster_size()")


def block_in_cluster_idx() -> tuple[Any, Any, Any]:
    """The block's (x, y, z) in its cluster."""
    return _triple("cluster.ctaid", "block_in_cluster_idx()")


def block_in_cluster_dim() -> tuple[Any, Any, Any]:
    """Blocks of a cluster in x, y, z."""
    return _triple("cluster.nctaid", "block_in_cluster_dim()")


def block_idx_in_cluster() -> Any:
    """The block's rank in its cluster, counted along x, then y, then z."""
    return read_register("cluster.ctarank", "block_idx_in_cluster()")


def cluster_arrive() -> None:
    """Arrive at the cluster's barrier; what was written before is visible after the wait."""
    emit_op("cluster_arrive()", "nvvm.cluster.arrive", attributes=_ALIGNED)


def cluster_arrive_relaxed() -> None:
    """Arrive at the cluster's barrier, ordering no memory accesses."""
    emit_op("cluster_arrive_relaxed()", "nvvm.cluster.arrive.relaxed", attributes=_ALIGNED)


def cluster_wait() -> None:
    """Wait until all threads of the cluster have arrived."""
    emit_op("cluster_wait()", "nvvm.cluster.wait", attributes=_ALIGNED)


def map_address(address: Any, rank: Any, what: str) -> Any:
    """The `!llvm.ptr<7>` of the same place in the shared memory of block `rank` (`mapa`)."""
    return emit_op(what, "nvvm.mapa", [address, i32(rank)], ["!llvm.ptr<7>"]).result


def map_dsmem_ptr(ptr: Any, peer_cta_rank_in_cluster: Any) -> Pointer:
    """A pointer to the same place in the shared memory of another block of the cluster."""
    what = "map_dsmem_ptr()"
    if not isinstance(ptr, Pointer) or ptr.space != "smem":
        raise DSLTypeError(f"{what} takes a pointer into shared memory, got {ptr}")
    from basedsl.metastage import require

    trace = require(what)
    address = map_address(ptr.llvm_ptr, peer_cta_rank_in_cluster, what)
    kind = memref_type(trace, ptr.dtype, "dsmem", RUN, ptr.alignment)
    made = MakeMemRef(define(trace.bindings), pointer=address, type=kind, loc=trace.loc())
    return Pointer(ptr.dtype, "dsmem", ptr.alignment, made.memref)
