"""Clusters: their barrier, the position of a block in its cluster, shared memory of other blocks.

PTX ISA 9.7.13.4 "barrier.cluster", 9.7.9.23 "mapa", and the special registers `%cluster_*`. All
need sm_90. In a launch without clusters each block is a cluster of its own.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, Integer
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.arch.indices import read_register
from basedsl_cute.dialect import define
from basedsl_cute.dialect.ops import MakeMemRef
from basedsl_cute.tensors.pointer import RUN, Pointer, memref_type

_ALIGNED = {"aligned": "unit"}


def _triple(register: str, what: str) -> tuple[Any, Any, Any]:
    x, y, z = (read_register(f"{register}.{axis}", what) for axis in "xyz")
    return x, y, z


@takes_location
def cluster_idx() -> tuple[Int32, Int32, Int32]:
    """Return the index (x, y, z) of the cluster in the grid (`%clusterid`)."""
    return _triple("clusterid", "cluster_idx()")


@takes_location
def cluster_dim() -> tuple[Int32, Int32, Int32]:
    """Return the number of clusters of the grid in x, y and z (`%nclusterid`)."""
    return _triple("nclusterid", "cluster_dim()")


@takes_location
def cluster_size() -> Int32:
    """Return the number of blocks of a cluster (`%cluster_nctarank`)."""
    return read_register("cluster.nctarank", "cluster_size()")


@takes_location
def block_in_cluster_idx() -> tuple[Int32, Int32, Int32]:
    """Return the index (x, y, z) of the block in its cluster (`%cluster_ctaid`)."""
    return _triple("cluster.ctaid", "block_in_cluster_idx()")


@takes_location
def block_in_cluster_dim() -> tuple[Int32, Int32, Int32]:
    """Return the number of blocks of a cluster in x, y and z (`%cluster_nctaid`)."""
    return _triple("cluster.nctaid", "block_in_cluster_dim()")


@takes_location
def block_idx_in_cluster() -> Int32:
    """Return the rank of the block in its cluster, counted along x, then y, then z
    (`%cluster_ctarank`).
    """
    return read_register("cluster.ctarank", "block_idx_in_cluster()")


@takes_location
def cluster_arrive() -> None:
    """Arrive at the cluster's barrier and go on (PTX `barrier.cluster.arrive.aligned`, release).

    All threads of a warp call it. Memory that the thread wrote before is visible to the cluster's
    threads after their `cluster_wait()`.
    """
    emit_op("cluster_arrive()", "nvvm.cluster.arrive", attributes=_ALIGNED)


@takes_location
def cluster_arrive_relaxed() -> None:
    """Arrive at the cluster's barrier without ordering memory (PTX
    `barrier.cluster.arrive.relaxed`).
    """
    emit_op("cluster_arrive_relaxed()", "nvvm.cluster.arrive.relaxed", attributes=_ALIGNED)


@takes_location
def cluster_wait() -> None:
    """Wait until all threads of the cluster have arrived (PTX `barrier.cluster.wait.aligned`,
    acquire).
    """
    emit_op("cluster_wait()", "nvvm.cluster.wait", attributes=_ALIGNED)


def map_address(address: Any, rank: int | Integer, what: str) -> Any:
    """Return the `!llvm.ptr<7>` of the same place in the shared memory of block `rank` (PTX
    `mapa`).
    """
    return emit_op(what, "nvvm.mapa", [address, i32(rank)], ["!llvm.ptr<7>"]).result


@takes_location
def map_dsmem_ptr(ptr: Pointer, peer_cta_rank_in_cluster: int | Integer) -> Pointer:
    """Return a pointer to the same place in the shared memory of another block of the cluster
    (`mapa`).

    `ptr` points into this block's shared memory (DSLTypeError otherwise). The other block has the
    rank `peer_cta_rank_in_cluster`, counted as by `block_idx_in_cluster()`. Accesses through the
    result need it to be running: wait at the cluster's barrier first, and before it ends.
    """
    what = "map_dsmem_ptr()"
    if not isinstance(ptr, Pointer) or ptr.space != "smem":
        raise DSLTypeError(f"{what} takes a pointer into shared memory, got {ptr}")
    from basedsl import current_trace

    trace = current_trace(what)
    address = map_address(ptr.llvm_ptr, peer_cta_rank_in_cluster, what)
    kind = memref_type(trace, ptr.dtype, "dsmem", RUN, ptr.alignment)
    made = MakeMemRef(define(trace.bindings), pointer=address, type=kind, loc=trace.loc())
    return Pointer(ptr.dtype, "dsmem", ptr.alignment, made.memref)
