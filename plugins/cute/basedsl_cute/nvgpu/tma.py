"""TMA atoms: tiles of global tensors copied by the TMA unit (sm_90 and later).

The host makes an atom and a coordinate tensor of a tensor in global memory; a kernel tiles the
coordinate tensor like the original, partitions it, and copies:

    atom, tma_a = make_tiled_tma_atom(CopyBulkTensorTileG2SOp(), a, smem_layout, (128, 64))
    ...
    tAsA, tAgA = tma_partition(atom, 0, cute.make_layout(1),
                               cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
    cute.copy(atom, tAgA[None, k], tAsA[None, stage], tma_bar_ptr=barrier)

PTX ISA 5.5, "Tensors", and 9.7.9.27, "cp.async.bulk.tensor". What one instruction copies is in
`nvgpu.tma_box`.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Int16, Int64, Numeric, as_numeric
from basedsl_cute import algebra, arch
from basedsl_cute.algebra import ComposedLayout, Layout
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.tensor_map import (
    copy_tensor_map,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    replace_address,
    replace_extent,
    replace_stride,
)
from basedsl_cute.arch.tma import (
    REDUCTIONS,
    prefetch_tensor_map,
    tma_load,
    tma_prefetch,
    tma_reduce,
    tma_store,
)
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.hardware.tensor_map_format import REDUCIBLE, SWIZZLE_128B_ATOM_32B, SWIZZLE_BYTES
from basedsl_cute.host.tensor_map_argument import TensorMapValue, encode_tensor_map
from basedsl_cute.nvgpu.tma_box import (
    Box,
    find_box,
    leaves,
    modes_of,
    paths_of,
    share_of_box,
    stretches_of,
    swizzle_number,
    tile_of,
)
from basedsl_cute.tensors.make_tensor import make_identity_tensor
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor


@dataclass(frozen=True)
class CopyBulkTensorTileG2SOp:
    """The TMA copy of a tile from global to shared memory (PTX `cp.async.bulk.tensor`, sm_90).

    `cute.copy` with its atom takes `tma_bar_ptr=`, the mbarrier that the bytes complete.
    `cta_group` is 1, or 2 (`tcgen05.CtaGroup.TWO`) for a pair of blocks: then the bytes complete
    the same mbarrier of the pair's even block (sm_100f).
    """

    cta_group: int = 1


@dataclass(frozen=True)
class CopyBulkTensorTileG2SMulticastOp:
    """The TMA copy of a tile from global memory to several blocks of the cluster (sm_90).

    `cute.copy` with its atom takes `tma_bar_ptr=` and `mcast_mask=`, the blocks as bits. Each of
    the blocks loads a part of the tile for all; the bytes count at the same mbarrier of each.
    `cta_group` is as for `CopyBulkTensorTileG2SOp`: of each pair, the even block counts.
    """

    cta_group: int = 1


@dataclass(frozen=True)
class CopyBulkTensorTileS2GOp:
    """The TMA copy of a tile from shared to global memory (PTX `cp.async.bulk.tensor`, sm_90).

    It is complete when its bulk group is: see `cute.arch.cp_async_bulk_commit_group`.
    """


@dataclass(frozen=True)
class CopyReduceBulkTensorTileS2GOp:
    """The TMA copy that combines a tile of shared memory into global memory (sm_90).

    PTX `cp.reduce.async.bulk.tensor`. `reduction_kind` is "add", "min", "max", "inc", "dec",
    "and", "or" or "xor", or a `cute.ReductionOp` (DSLTypeError otherwise).
    """

    reduction_kind: Any = "add"

    def __post_init__(self) -> None:
        if self.kind not in REDUCTIONS:
            raise DSLTypeError(f"{self.reduction_kind!r} is none of {', '.join(REDUCTIONS)}")

    @property
    def kind(self) -> str:
        """PTX's name of the reduction."""
        given = self.reduction_kind
        return given.name.lower() if isinstance(given, enum.Enum) else given


def _check_reduction(kind: str, dtype: Any) -> None:
    """DSLTypeError unless the TMA unit has this reduction of elements of `dtype`."""
    name = {"TFloat32": "Float32"}.get(dtype.__name__, dtype.__name__)
    if name not in REDUCIBLE[kind]:
        raise DSLTypeError(
            f"the TMA unit has no reduction {kind!r} of {dtype.__name__}",
            hint=f"it has {kind!r} of {', '.join(REDUCIBLE[kind])}",
        )


__all__ = [
    "Box",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyReduceBulkTensorTileS2GOp",
    "TmaAtom",
    "TmaInfo",
    "copy_tensormap",
    "cp_fence_tma_desc_release",
    "create_tma_multicast_mask",
    "fence_tma_desc_acquire",
    "fence_tma_desc_release",
    "find_box",
    "make_tiled_tma_atom",
    "make_tiled_tma_atom_A",
    "make_tiled_tma_atom_B",
    "prefetch",
    "prefetch_descriptor",
    "tma_partition",
    "update_tma_descriptor",
]


def _both(what: str, x: Any, other: str, y: Any) -> tuple[tuple[str, None], ...]:
    """Return notes that say what two operands are."""
    return (f"{what} is {x}", None), (f"{other} is {y}", None)


_LOADS = (CopyBulkTensorTileG2SOp, CopyBulkTensorTileG2SMulticastOp)
_STORES = (CopyBulkTensorTileS2GOp, CopyReduceBulkTensorTileS2GOp)


class TmaAtom:
    """A TMA copy of one tensor: its tensor map, and its static facts. `make_tiled_tma_atom` makes
    it.
    """

    def __init__(self, tensor_map: TensorMapValue, op: Any, dtype: Any, box: Box) -> None:
        self.tensor_map = tensor_map
        self.op = op
        self.dtype = dtype
        self.box = box

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self.tensor_map,)

    def __dsl_static__(self) -> Any:
        return (self.op, self.dtype, self.box)

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> TmaAtom:
        return TmaAtom(parts[0], self.op, self.dtype, self.box)

    @property
    def value_type(self) -> Any:
        """The element type of the tile in shared memory."""
        return self.dtype

    def __str__(self) -> str:
        return f"{type(self.op).__name__} of {self.dtype.__name__}, box {self.box.extents}"

    def _place(self, coordinate: Any) -> list[Any]:
        """Return a coordinate of the tensor in the order of the tensor map's modes."""
        flat = leaves(coordinate)
        return [flat[mode] for mode in self.box.order]

    def _check_shared(self, shared: Tensor) -> None:
        """Check that the shared tensor has the swizzle and element width that the tensor map was
        encoded with.

        TMA would write elements where another tensor does not look for them: DSLTypeError.
        """
        if shared.element_type.width != self.dtype.width:
            raise DSLTypeError(
                f"the TMA atom has elements of {self.dtype.width} bits, its shared tensor of "
                f"{shared.element_type.width}",
                notes=_both("the atom", self, "the shared tensor", shared),
                hint="the tile in shared memory has the elements of the tensor in global memory",
            )
        inner = shared.pointer.swizzle
        if isinstance(shared.layout, algebra.ComposedLayout):
            inner = algebra.recast_layout(8, self.dtype.width, shared.layout.inner)
        number = swizzle_number(inner)
        if number != self.box.swizzle:
            atom, tensor = (_swizzle_text(n) for n in (self.box.swizzle, number))
            raise DSLTypeError(
                f"the TMA atom was made for {atom}, and its shared tensor has {tensor}",
                notes=_both("the atom", self, "the shared tensor", shared),
                hint="make the tensor with the layout that the atom was made with: "
                "storage.tile.get_tensor(layout.outer, swizzle=layout.inner)",
            )

    def prefetch_tensors(self, src: Tensor, tma_desc_ptr: Any = None) -> None:
        """Load a partitioned tile into the L2 cache: `cute.prefetch` by this atom."""
        if not isinstance(self.op, _LOADS) or src.has_memory:
            raise DSLTypeError(
                "prefetch takes a TMA load and its coordinate tensor",
                notes=_both("the atom", self, "the tensor", src),
                hint="partition the tensor with tma_partition",
            )
        size, each = int(algebra.size(src.shape)), self.box.size
        tensor_map = self.tensor_map if tma_desc_ptr is None else tma_desc_ptr
        with arch.elect_one():
            for at in range(0, size, each):
                tile = algebra.add_offset(src.iterator, src.layout(at))
                tma_prefetch(tensor_map, self._place(tile))

    def copy_tensors(
        self,
        src: Tensor,
        dst: Tensor,
        pred: Any = None,
        *,
        tma_bar_ptr: Any = None,
        mcast_mask: Any = None,
        cache_policy: Any = None,
        tma_desc_ptr: Any = None,
    ) -> None:
        """Copy partitioned tensors: `cute.copy` by this atom, called by a whole warp.

        The tensor map is the atom's own, or one in global memory at `tma_desc_ptr` that was made
        from it. An atom that is not for multicasts loads for its own block, whatever `mcast_mask`
        says.

        In a loop with `prefetch_stages=` a load needs no barrier: all threads of the block call
        it, one of them issues it, and the tile has landed after the loop's `sync_threads()`.
        """
        tensor_map = self.tensor_map if tma_desc_ptr is None else tma_desc_ptr
        is_load = isinstance(self.op, _LOADS)
        shared, coordinates = (dst, src) if is_load else (src, dst)
        if shared.memspace != "smem" or coordinates.has_memory:
            raise DSLTypeError(
                "a TMA copy is between shared memory and its coordinate tensor",
                notes=_both("the source", src, "the destination", dst),
                hint="partition both with tma_partition",
            )
        if not isinstance(self.op, CopyBulkTensorTileG2SMulticastOp):
            mcast_mask = None
        elif mcast_mask is None:
            raise DSLTypeError("a multicast needs the blocks that get the tile: mcast_mask=")
        unbound = is_load and tma_bar_ptr is None
        if unbound and (pred is not None or mcast_mask is not None):
            raise DSLTypeError("a TMA load needs the mbarrier that it completes: tma_bar_ptr=")
        self._check_shared(shared)
        size, other = algebra.size(shared.shape), algebra.size(coordinates.shape)
        each = self.box.size
        if not isinstance(size, int) or not isinstance(other, int) or size != other or size % each:
            raise DSLTypeError(
                f"a TMA copy of {src.shape} to {dst.shape}: not whole boxes of {each} elements",
                notes=((f"the atom is {self}", None),),
                hint="both are one tile: choose the tile and the stage, as in tAgA[None, k] and "
                "tAsA[None, stage]",
            )
        # The loop that waits for a load without a barrier has one thread issue it.
        with predicated(pred), contextlib.nullcontext() if unbound else arch.elect_one():
            for at in range(0, size, each):
                place = shared.pointer.moved(shared.layout(at))
                tile = algebra.add_offset(coordinates.iterator, coordinates.layout(at))
                where = self._place(tile)
                if is_load:
                    tma_load(
                        tensor_map,
                        place,
                        tma_bar_ptr,
                        where,
                        mcast_mask=mcast_mask,
                        cache_hint=cache_policy,
                        nbytes=each * self.dtype.width // 8,
                        blocks=int(self.op.cta_group),
                    )
                elif isinstance(self.op, CopyReduceBulkTensorTileS2GOp):
                    tma_reduce(tensor_map, place, where, self.op.kind)
                else:
                    tma_store(tensor_map, place, where, cache_hint=cache_policy)


def _swizzle_text(number: int | None) -> str:
    if not number:
        return "no swizzle" if number == 0 else "one that TMA does not have"
    chunks = " of chunks of 32" if number == SWIZZLE_128B_ATOM_32B else ""
    return f"a swizzle of {SWIZZLE_BYTES[number]} bytes{chunks}"


class TmaInfo:
    """A TMA atom, its coordinate tensor, and the shared layout of a tile.

    It unpacks as the pair (atom, coordinate tensor).
    """

    def __init__(self, atom: TmaAtom, tma_tensor: Tensor, smem_layout: Any) -> None:
        self.atom = atom
        self.tma_tensor = tma_tensor
        self.smem_layout = smem_layout

    def __iter__(self) -> Iterator[Any]:
        return iter((self.atom, self.tma_tensor))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        return (self.atom, self.tma_tensor)[i]


@takes_location
def make_tiled_tma_atom(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    cta_tiler: Any,
    num_multicast: int = 1,
    *,
    internal_type: type[Numeric] | None = None,
) -> TmaInfo:
    """Make a TMA atom for tiles of a tensor in global memory, and its coordinate tensor. Host code
    only.

    - `op`: one of the four TMA copy operations of this module.
    - `gmem_tensor`: a tensor of up to 5 modes, which may be nested; one stride is 1, the others
      are multiples of 16 bytes.
    - `smem_layout`: the layout of one tile in shared memory, swizzled or not.
    - `cta_tiler`: the tile's extents by mode, or a layout of its coordinates.
    - `num_multicast`: the number of blocks, each of which loads an equal part of the tile for all.
    - `internal_type`: the type of the elements in shared memory, of the same width: their bits
      stay.

    Raises DSLTypeError if no TMA copy moves such a tile.
    """
    if not isinstance(op, _LOADS + _STORES):
        raise DSLTypeError(f"{op!r} is no TMA copy operation")
    if num_multicast != 1 and not isinstance(op, CopyBulkTensorTileG2SMulticastOp):
        raise DSLTypeError(
            f"num_multicast={num_multicast} needs CopyBulkTensorTileG2SMulticastOp, not {op!r}"
        )
    dtype = gmem_tensor.element_type if internal_type is None else internal_type
    if dtype.width != gmem_tensor.element_type.width:
        raise DSLTypeError(
            f"internal_type={dtype.__name__} has {dtype.width} bits, the tensor's elements have "
            f"{gmem_tensor.element_type.width}"
        )
    if isinstance(op, CopyReduceBulkTensorTileS2GOp):
        _check_reduction(op.kind, dtype)
    modes = modes_of(gmem_tensor)
    box = find_box(smem_layout, tile_of(gmem_tensor, cta_tiler), modes, dtype.width)
    part = share_of_box(box, num_multicast, dtype.width)
    tensor_map = encode_tensor_map(
        dtype,
        gmem_tensor.iterator.toint(),
        [modes.shape[mode] for mode in part.order],
        [modes.stride[mode] for mode in part.order[1:]],
        part.extents,
        part.swizzle,
        modes=[modes.names[mode] for mode in part.order],
    )
    shape = gmem_tensor.layout.shape
    coordinates = make_identity_tensor(shape if isinstance(shape, tuple) else (shape,))
    return TmaInfo(TmaAtom(tensor_map, op, dtype, box), coordinates, smem_layout)


@takes_location
def make_tiled_tma_atom_A(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    mma_tiler_mnk: Any,
    tiled_mma: Any,
    cluster_shape_vmnk: Any = None,
    internal_type: type[Numeric] | None = None,
) -> TmaInfo:
    """Make a TMA atom for tiles (M, K) of operand A, multicast to the cluster's blocks along N.

    (M, N, K) is `mma_tiler_mnk`; `cluster_shape_vmnk` the cluster's shape or layout (V, M, N, K).
    For the other parameters see `make_tiled_tma_atom`.
    """
    m, _, k = mma_tiler_mnk
    blocks = _along(op, cluster_shape_vmnk, 2)
    tile = _operand_tile(gmem_tensor, (m, k), tiled_mma, "A")
    one = _one_stage(smem_layout, tiled_mma)
    return make_tiled_tma_atom(op, gmem_tensor, one, tile, blocks, internal_type=internal_type)


@takes_location
def make_tiled_tma_atom_B(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    mma_tiler_mnk: Any,
    tiled_mma: Any,
    cluster_shape_vmnk: Any = None,
    internal_type: type[Numeric] | None = None,
) -> TmaInfo:
    """Make a TMA atom for tiles (N, K) of operand B, multicast to the cluster's blocks along M.

    (M, N, K) is `mma_tiler_mnk`; `cluster_shape_vmnk` the cluster's shape or layout (V, M, N, K).
    For the other parameters see `make_tiled_tma_atom`.
    """
    _, n, k = mma_tiler_mnk
    blocks = _along(op, cluster_shape_vmnk, 1)
    tile = _operand_tile(gmem_tensor, (n, k), tiled_mma, "B")
    one = _one_stage(smem_layout, tiled_mma)
    return make_tiled_tma_atom(op, gmem_tensor, one, tile, blocks, internal_type=internal_type)


def _operand_tile(gmem_tensor: Tensor, extents: Any, tiled_mma: Any, operand: str) -> Any:
    """Return the tiler of an operand: its extents, or where blocks are the threads of the MMA the
    part of one block in the order ((MN, K), MMA_MN, MMA_K).
    """
    if not getattr(getattr(tiled_mma, "op", None), "threads_are_blocks", False):
        return extents
    whole = tile_of(gmem_tensor, extents)
    part, _ = tiled_mma.tiling.partition(operand, algebra.make_layout((whole[0], whole[1])), 0)
    return part


def _one_stage(smem_layout: Any, tiled_mma: Any) -> Any:
    """Return the layout of the first stage where an operand's layout has stages."""
    if not getattr(getattr(tiled_mma, "op", None), "threads_are_blocks", False):
        return smem_layout
    if algebra.rank(smem_layout) < 4:
        return smem_layout
    return algebra.slice_(smem_layout, (None, None, None, 0))


def _along(op: Any, cluster_shape_vmnk: Any, mode: int) -> int:
    """Return the number of the cluster's blocks, a shape or layout (V, M, N, K), that get a
    tile.
    """
    if not isinstance(op, CopyBulkTensorTileG2SMulticastOp) or cluster_shape_vmnk is None:
        return 1
    shape = getattr(cluster_shape_vmnk, "shape", cluster_shape_vmnk)
    return int(algebra.size(shape[mode]))


@takes_location
def tma_partition(
    atom: TmaAtom,
    cta_coord: Any = 0,
    cta_layout: Any = None,
    smem_tensor: Any = None,
    gmem_tensor: Any = None,
) -> tuple[Tensor, Tensor]:
    """Partition a shared tensor and its coordinate tensor into TMA copies: (tAsA, tAgA).

    - `atom`: the TMA atom, or the result of `make_tiled_tma_atom`.
    - `cta_coord`, `cta_layout`: this block among those that load the tile together, for
      multicasts.
    - `smem_tensor`: (tile, stages...), mode 0 grouped by `cute.group_modes`.
    - `gmem_tensor`: the tiles of the atom's coordinate tensor, (tile, tiles...), mode 0 grouped.

    Both results have the modes ((box, boxes), other modes...). Raises DSLTypeError if the order of
    the elements in shared memory is not the atom's.
    """
    atom = _atom(atom)
    tile = algebra.get(smem_tensor.layout, 0)
    inverse = algebra.right_inverse(tile)
    if int(algebra.size(inverse)) != int(algebra.size(tile)):
        raise DSLTypeError(f"the tile {tile} has gaps in shared memory")
    values = algebra.logical_divide(inverse, algebra.make_layout(atom.box.size))
    _check_order(atom, tile, algebra.composition(gmem_tensor.layout[0], values[0]), gmem_tensor)
    parts = []
    for tensor in (smem_tensor, gmem_tensor):
        rest = (None,) * (algebra.rank(tensor.layout) - 1)
        by_box = algebra.composition(tensor.layout, (values, *rest))
        parts.append(Tensor(tensor.iterator, by_box))
    if cta_layout is None or int(algebra.cosize(cta_layout)) == 1:
        return parts[0], parts[1]
    share = atom.box.size // int(algebra.cosize(cta_layout))
    offset = cta_layout(cta_coord) * share
    smem, gmem = (
        part.domain_offset(((offset, 0), *(0,) * (algebra.rank(part.layout) - 1))) for part in parts
    )
    return smem, gmem


def _check_order(atom: TmaAtom, tile: Any, box: Any, gmem_tensor: Tensor) -> None:
    """DSLTypeError unless a box has its elements in shared memory in the tensor map's order."""
    if gmem_tensor.has_memory:
        raise DSLTypeError(
            "tma_partition takes the coordinate tensor that came with the atom",
            notes=_both("the atom", atom, "the tensor", gmem_tensor),
        )
    found = [walk[:3:2] for walk in stretches_of(box, paths_of(gmem_tensor.iterator))]
    wanted = [(n, mode) for n, mode in zip(atom.box.extents, atom.box.order, strict=True) if n > 1]
    if found != wanted:
        raise DSLTypeError(
            "the tile in shared memory has its elements in another order than the atom",
            notes=(
                (f"the tile is {tile}: (extent, mode) {found}", None),
                (f"the atom is {atom}: (extent, mode) {wanted}", None),
            ),
            hint="make the atom with the layout of one stage of this tensor",
        )


@takes_location
def create_tma_multicast_mask(cta_layout_vmnk: Any, cta_coord_vmnk: Any, mcast_mode: int) -> Any:
    """Return the blocks of the cluster that differ from this one in mode `mcast_mode` only, as
    bits.

    `cta_layout_vmnk` is the layout of the cluster's blocks, `cta_coord_vmnk` the coordinate of
    this one. The result is an Int16 for `mcast_mask=`.
    """
    mask = algebra.make_layout_image_mask(cta_layout_vmnk, cta_coord_vmnk, mcast_mode)
    return Int16(mask) if type(mask) is int else mask.to(Int16)


@takes_location
def prefetch_descriptor(atom: TmaAtom) -> None:
    """Load the atom's tensor map into the descriptor cache before its first use; one thread calls
    it.
    """
    prefetch_tensor_map(_atom(atom).tensor_map)


@takes_location
def copy_tensormap(atom: TmaAtom, tensormap_ptr: Pointer) -> None:
    """Copy the atom's tensor map, 128 bytes, to shared or global memory; a whole warp calls it."""
    copy_tensor_map(_atom(atom).tensor_map, tensormap_ptr)


@takes_location
def update_tma_descriptor(atom: TmaAtom, gmem_tensor: Tensor, tensormap_ptr: Pointer) -> None:
    """Change the tensor map at `tensormap_ptr` to describe `gmem_tensor`; one thread calls it
    (sm_90a).

    Address, extents and strides are replaced. The tensor has the modes of the atom's own, the same
    of them contiguous; its address and other strides are multiples of 16 bytes. Raises
    DSLTypeError for other modes or elements.
    """
    atom = _atom(atom)
    shape, stride, _ = modes_of(gmem_tensor)
    order = atom.box.order
    if len(shape) != len(order) or gmem_tensor.element_type is not atom.dtype:
        raise DSLTypeError(
            f"the tensor does not fit the TMA atom: it needs {len(order)} modes of "
            f"{atom.dtype.__name__}",
            notes=_both("the atom", atom, "the tensor", gmem_tensor),
        )
    leading = stride[order[0]]
    if type(leading) is int and leading != 1:
        raise DSLTypeError(
            f"mode {order[0]} of {gmem_tensor} is not contiguous, as the atom's tensor is"
        )
    size = atom.dtype.width // 8
    replace_address(tensormap_ptr, gmem_tensor.iterator.toint())
    for i, mode in enumerate(order):
        replace_extent(tensormap_ptr, i, shape[mode])
        if i:
            replace_stride(tensormap_ptr, i, as_numeric(stride[mode]).to(Int64) * size)


def _atom(atom: Any) -> TmaAtom:
    """Return a TMA atom, that of a `TmaInfo` too; DSLTypeError for anything else."""
    if isinstance(atom, TmaInfo):
        atom = atom.atom
    if not isinstance(atom, TmaAtom):
        raise DSLTypeError(f"{atom} is no TMA atom", hint="make one with make_tiled_tma_atom")
    return atom


@takes_location
def prefetch(atom: TmaAtom, src: Tensor, *, tma_desc_ptr: Pointer | None = None) -> None:
    """Load a tile that a TMA load will copy into the L2 cache; a whole warp calls it.

    `src` is a coordinate tensor that `tma_partition` partitioned; `tma_desc_ptr` a tensor map in
    global memory to use instead of the atom's. Raises DSLTypeError for other atoms and tensors.
    """
    _atom(atom).prefetch_tensors(src, tma_desc_ptr)
