"""`block_copy`: TMA copies of a block's whole tile, without partitions written by hand."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy_tensors import copy
from basedsl_cute.hardware.unsupported import NotOfferedError
from basedsl_cute.nvgpu.tma import tma_partition
from basedsl_cute.nvgpu.tma_atom import (
    LOADS,
    CopyBulkTensorTileG2SMulticastOp,
    TmaAtom,
    TmaInfo,
)
from basedsl_cute.tensors.tensor import Tensor


@takes_location
def block_copy(
    atom: Any, src: Tensor, dst: Tensor, *, tma_multicast: Any = None, **arguments: Any
) -> None:
    """Copy a tile between global and shared memory by a TMA atom; a whole warp calls it.

    - `atom`: the result of `make_tiled_tma_atom`, made for a single block.
    - `src`, `dst`: the tile in shared memory, and that tile of the atom's coordinate tensor.
    - `tma_multicast`: for a load that blocks of the cluster share, `{"cluster_shape": (m, n),
      "multicast_dim": "M"}`: the blocks with the same coordinate along M, which are n, all get the
      tile. The first of them loads it for all; the others call `block_copy` too, and load nothing.
    - `arguments`: what `cute.copy` takes, such as `tma_bar_ptr=`, the mbarrier of this block that
      the bytes of a load complete.

    Raises DSLTypeError for another atom or tensor, NotOfferedError for a pair of blocks that share
    a multiplication (`"use_2cta_mma_inst": True`).
    """
    given = atom.atom if isinstance(atom, TmaInfo) else atom
    if not isinstance(given, TmaAtom):
        raise DSLTypeError(
            f"block_copy() takes a TMA atom, not {atom}", hint="make one with make_tiled_tma_atom"
        )
    is_load = isinstance(given.op, LOADS)
    tiles = (dst, src) if is_load else (src, dst)
    shared, coordinates = tma_partition(given, 0, None, *(_whole(tile) for tile in tiles))
    if tma_multicast is not None:
        shape, dim = _cluster(tma_multicast)
        peers = shape[1 - dim]
        if peers > 1:
            if not is_load:
                raise DSLTypeError(f"a multicast is a load, and the atom is {given}")
            op = CopyBulkTensorTileG2SMulticastOp(given.op.cta_group)
            given = TmaAtom(given.tensor_map, op, given.dtype, given.box, given.units)
            rank = arch.block_idx_in_cluster()
            row, column = rank % shape[0], rank // shape[0]
            if dim == 0:
                mask, first = (
                    Int32(sum(1 << shape[0] * n for n in range(peers))) << row,
                    column == 0,
                )
            else:
                mask, first = Int32((1 << peers) - 1) << column * shape[0], row == 0
            arguments |= {"mcast_mask": mask, "pred": first}
    parts = (coordinates, shared) if is_load else (shared, coordinates)
    copy(given, *parts, **arguments)


def _whole(tile: Tensor) -> Tensor:
    """Return the tile as a tensor of one mode."""
    rank = algebra.rank(tile.layout)
    return algebra.group_modes(tile, 0, rank) if rank > 1 else tile


def _cluster(multicast: dict[str, Any]) -> tuple[tuple[int, int], int]:
    """Return the cluster's shape and the mode along which blocks share a tile, 0 for M, 1 for N."""
    given = dict(multicast)
    shape, dim = given.pop("cluster_shape", None), given.pop("multicast_dim", None)
    if given.pop("use_2cta_mma_inst", False):
        raise NotOfferedError(
            "block_copy() for pairs of blocks that share a multiplication is not offered",
            hint="cute.copy of what cpasync.tma_partition returns",
        )
    sizes = shape if isinstance(shape, tuple | list) else ()
    if given or dim not in ("M", "N") or len(sizes) < 2 or not all(type(n) is int for n in sizes):
        raise DSLTypeError(
            f"tma_multicast={multicast!r} does not say which blocks share the tile",
            hint='write {"cluster_shape": (2, 1), "multicast_dim": "N"}',
        )
    return (sizes[0], sizes[1]), "MN".index(dim)
