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

from typing import Any

from basedsl import DSLTypeError, Int16, Int64, Numeric, as_numeric
from basedsl_cute import algebra
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
from basedsl_cute.arch.tma import prefetch_tensor_map
from basedsl_cute.hardware.tensor_map_format import L2_PROMOTIONS, UNPACKED_TYPES
from basedsl_cute.host.tensor_map_argument import encode_tensor_map
from basedsl_cute.nvgpu.tma_atom import (
    LOADS,
    STORES,
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileS2GOp,
    CopyReduceBulkTensorTileS2GOp,
    TmaAtom,
    TmaInfo,
    both,
    check_reduction,
)
from basedsl_cute.nvgpu.tma_box import (
    Box,
    find_box,
    has_repeats,
    modes_of,
    paths_of,
    scale_modes,
    share_of_box,
    stretches_of,
    tile_of,
)
from basedsl_cute.nvgpu.tma_im2col import IM2COL_OPS
from basedsl_cute.nvgpu.tma_rows import (
    BY_ROWS,
    CopyBulkTensorTileGather4G2SMulticastOp,
    CopyBulkTensorTileGather4G2SOp,
    CopyBulkTensorTileScatter4S2GOp,
    RowsAtom,
    box_of_rows,
)
from basedsl_cute.tensors.make_tensor import make_identity_tensor
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor

__all__ = [
    "Box",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileGather4G2SMulticastOp",
    "CopyBulkTensorTileGather4G2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyBulkTensorTileScatter4S2GOp",
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


_MULTICASTS = (CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileGather4G2SMulticastOp)


@takes_location
def make_tiled_tma_atom(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    cta_tiler: Any,
    num_multicast: int = 1,
    *,
    internal_type: type[Numeric] | None = None,
    l2_promotion: int = 256,
) -> TmaInfo:
    """Make a TMA atom for tiles of a tensor in global memory, and its coordinate tensor. Host code
    only.

    - `op`: one of the TMA copy operations of this module. For a gather or scatter of rows the
      tensor is a matrix, and the coordinate tensor has one tile of rows (`nvgpu.tma_rows`).
    - `gmem_tensor`: a tensor of up to 5 modes, which may be nested; one stride is 1, the others
      are multiples of 16 bytes.
    - `smem_layout`: the layout of one tile in shared memory, swizzled or not.
    - `cta_tiler`: the tile's extents by mode, or a layout of its coordinates.
    - `num_multicast`: the number of blocks, each of which loads an equal part of the tile for all.
    - `internal_type`: the type of the elements in shared memory, of the same width: their bits
      stay. Elements of 4 and 6 bits become a byte each for Int8, 16 of them packed at the beginning
      of 16 bytes, as tcgen05.mma takes them; a wider type copies several elements as one, as the
      bytes of scale factors, which have a mode of stride 0.
    - `l2_promotion`: the bytes that a load which misses L2 brings there at least: 64, 128 or 256,
      or 0 for what it asks for.

    Raises DSLTypeError if no TMA copy moves such a tile.
    """
    if isinstance(op, IM2COL_OPS):
        raise DSLTypeError(
            f"{op!r} copies pixels", hint="cpasync.make_im2col_tma_atom makes its atom"
        )
    if not isinstance(op, LOADS + STORES + BY_ROWS):
        raise DSLTypeError(f"{op!r} is no TMA copy operation")
    if num_multicast != 1 and not isinstance(op, _MULTICASTS):
        raise DSLTypeError(
            f"num_multicast={num_multicast} needs CopyBulkTensorTileG2SMulticastOp, not {op!r}"
        )
    if l2_promotion not in L2_PROMOTIONS:
        raise DSLTypeError(f"l2_promotion is 0, 64, 128 or 256 bytes, not {l2_promotion!r}")
    dtype, copied, units = _element_types(gmem_tensor.element_type, internal_type)
    if isinstance(op, CopyReduceBulkTensorTileS2GOp):
        check_reduction(op.kind, dtype)
    if has_repeats(gmem_tensor):
        modes, layout = scale_modes(gmem_tensor)
        coordinates = Tensor((0,) * len(modes.shape), layout)
    else:
        modes = modes_of(gmem_tensor)
        shape = gmem_tensor.layout.shape
        coordinates = make_identity_tensor(shape if isinstance(shape, tuple) else (shape,))
    tile = tile_of(gmem_tensor, cta_tiler, coordinates.layout)
    box = find_box(smem_layout, tile, modes, dtype.width, units)
    rows = 0
    if isinstance(op, BY_ROWS):
        part, rows = box_of_rows(box, modes, cta_tiler, dtype.width, units, num_multicast)
        shape = tuple(rows if mode == box.order[1] else n for mode, n in enumerate(modes.shape))
        coordinates = make_identity_tensor(shape)
    else:
        part = share_of_box(box, num_multicast, dtype.width)
    extents = [modes.shape[mode] for mode in part.order]
    tensor_map = encode_tensor_map(
        copied,
        gmem_tensor.iterator.toint(),
        [extents[0] // units, *extents[1:]] if units > 1 else extents,
        [_in_units(modes.stride[mode], units) for mode in part.order[1:]],
        (part.extents[0] // units, *part.extents[1:]),
        part.swizzle,
        modes=[modes.names[mode] for mode in part.order],
        bits_in_smem=dtype.width * units,
        l2_promotion=l2_promotion,
    )
    if rows:
        atom: TmaAtom = RowsAtom(tensor_map, op, dtype, box, rows, num_multicast)
    else:
        atom = TmaAtom(tensor_map, op, dtype, box, units)
    return TmaInfo(atom, coordinates, smem_layout)


def _in_units(stride: Any, units: int) -> Any:
    return stride // units if units > 1 else stride


def _element_types(given: Any, internal: Any) -> tuple[Any, Any, int]:
    """Return the element types in shared memory and of the tensor map, and how many elements of the
    tensor one of the map is. Raises DSLTypeError for an `internal_type` that there is not.
    """
    if internal is None or internal.width == given.width:
        dtype = given if internal is None else internal
        return dtype, dtype, 1
    if given.width in UNPACKED_TYPES and internal.width == 8:
        return internal, given, 1  # a byte each in shared memory
    if given.width >= 8 and internal.width % given.width == 0:
        return given, internal, internal.width // given.width
    raise DSLTypeError(
        f"internal_type={internal.__name__} has {internal.width} bits, the tensor's elements have "
        f"{given.width}",
        hint="elements of 4 and 6 bits are copied as bytes, others as their own or wider integers",
    )


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

    (M, N, K) is `mma_tiler_mnk`, `tiled_mma` the tiled MMA that reads the tiles, and
    `cluster_shape_vmnk` the cluster's shape or layout (V, M, N, K). `op`, `gmem_tensor`,
    `smem_layout` and `internal_type` are those of `make_tiled_tma_atom`.
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

    (M, N, K) is `mma_tiler_mnk`, `tiled_mma` the tiled MMA that reads the tiles, and
    `cluster_shape_vmnk` the cluster's shape or layout (V, M, N, K). `op`, `gmem_tensor`,
    `smem_layout` and `internal_type` are those of `make_tiled_tma_atom`.
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
    layout = scale_modes(gmem_tensor)[1] if has_repeats(gmem_tensor) else None
    whole = tile_of(gmem_tensor, extents, layout)
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
    if int(algebra.size(inverse)) != int(algebra.size(algebra.filter_zeros(tile))):
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
            notes=both("the atom", atom, "the tensor", gmem_tensor),
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
    """Copy the tensor map of `atom`, 128 bytes, to `tensormap_ptr` in shared or global memory; a
    whole warp calls it.
    """
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
            notes=both("the atom", atom, "the tensor", gmem_tensor),
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
