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

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int16, Int64, as_numeric
from basedsl_cute import algebra, arch
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
from basedsl_cute.hardware.tensor_map_format import REDUCIBLE, SWIZZLE_BYTES
from basedsl_cute.host.tensor_map_argument import TensorMapValue, encode_tensor_map
from basedsl_cute.nvgpu.tma_box import (
    Box,
    divided,
    find_box,
    leaves,
    modes_of,
    paths_of,
    tile_of,
    walked,
)
from basedsl_cute.tensors.make_tensor import make_identity_tensor
from basedsl_cute.tensors.tensor import Tensor


@dataclass(frozen=True)
class CopyBulkTensorTileG2SOp:
    """A tile from global to shared memory; its bytes count at an mbarrier (`tma_bar_ptr=`)."""


@dataclass(frozen=True)
class CopyBulkTensorTileG2SMulticastOp:
    """The same to several blocks of the cluster (`mcast_mask=`), each of which loads a part."""


@dataclass(frozen=True)
class CopyBulkTensorTileS2GOp:
    """A tile from shared to global memory, complete when its bulk group is."""


@dataclass(frozen=True)
class CopyReduceBulkTensorTileS2GOp:
    """A tile of shared memory combined into global memory: by "add", "min", "max", "inc", "dec",
    "and", "or" or "xor", or a `ReductionOp`.
    """

    reduction_kind: Any = "add"

    def __post_init__(self) -> None:
        if self.kind not in REDUCTIONS:
            raise DSLTypeError(f"{self.reduction_kind!r} is none of {', '.join(REDUCTIONS)}")

    @property
    def kind(self) -> str:
        given = self.reduction_kind
        return given.name.lower() if isinstance(given, enum.Enum) else given


def _check_reduction(kind: str, dtype: Any) -> None:
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

_LOADS = (CopyBulkTensorTileG2SOp, CopyBulkTensorTileG2SMulticastOp)
_STORES = (CopyBulkTensorTileS2GOp, CopyReduceBulkTensorTileS2GOp)


class TmaAtom:
    """A TMA copy of one tensor: its tensor map, and what of it is static."""

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
        return self.dtype

    def __str__(self) -> str:
        return f"{type(self.op).__name__} of {self.dtype.__name__}, box {self.box.extents}"

    def _place(self, coordinate: Any) -> list[Any]:
        """A coordinate of the tensor in the order of the tensor map's modes."""
        flat = leaves(coordinate)
        return [flat[mode] for mode in self.box.order]

    def _check_shared(self, shared: Tensor) -> None:
        """The TMA unit moves 16-byte pieces as the tensor map says; a tensor that finds them
        elsewhere, or elements of another width there, is another one.
        """
        if shared.element_type.width != self.dtype.width:
            raise DSLTypeError(
                f"{self} has elements of {self.dtype.width} bits, and {shared} of "
                f"{shared.element_type.width}",
                hint="the tile in shared memory has the elements of the tensor in global memory",
            )
        inner = shared.pointer.swizzle
        if isinstance(shared.layout, algebra.ComposedLayout):
            inner = algebra.recast_layout(8, self.dtype.width, shared.layout.inner)
        bits = inner.bits if isinstance(inner, algebra.Swizzle) else 0
        if bits != self.box.swizzle:
            atom, tensor = (
                f"a swizzle of {SWIZZLE_BYTES[n]} bytes" if n else "no swizzle"
                for n in (self.box.swizzle, bits)
            )
            raise DSLTypeError(
                f"{self} was made with a shared layout of {atom}; {shared} has {tensor}",
                hint="make the tensor with the layout that the atom was made with: "
                "storage.tile.get_tensor(layout.outer, swizzle=layout.inner)",
            )

    def prefetch_tensors(self, src: Tensor, tma_desc_ptr: Any = None) -> None:
        """`cute.prefetch` by this atom: have a partitioned tile in the L2 cache."""
        if not isinstance(self.op, _LOADS) or src.has_memory:
            raise DSLTypeError(
                f"prefetch takes a TMA load and its coordinate tensor, not {self} and {src}",
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
        """`cute.copy` by this atom: partitioned tensors, called by a whole warp. The tensor map is
        the atom's own, or one in global memory at `tma_desc_ptr` that was made from it. An atom
        that is not for multicasts loads for its own block, whatever `mcast_mask` says.

        In a loop with `prefetch_stages=` a load needs no barrier: all threads of the block call it,
        one of them issues it, and the tile is there after the loop's `sync_threads()`.
        """
        tensor_map = self.tensor_map if tma_desc_ptr is None else tma_desc_ptr
        is_load = isinstance(self.op, _LOADS)
        shared, coordinates = (dst, src) if is_load else (src, dst)
        if shared.memspace != "smem" or coordinates.has_memory:
            raise DSLTypeError(
                f"{self} copies between shared memory and a TMA coordinate tensor, not {src} "
                f"to {dst}",
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
                f"{self}: {src.shape} to {dst.shape} are no whole boxes of {each} elements",
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
                    )
                elif isinstance(self.op, CopyReduceBulkTensorTileS2GOp):
                    tma_reduce(tensor_map, place, where, self.op.kind)
                else:
                    tma_store(tensor_map, place, where, cache_hint=cache_policy)


class TmaInfo:
    """An atom with the coordinate tensor and the shared layout of a tile that go with it.

    Unpacks as the pair (atom, coordinate tensor).
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
    smem_layout: Any,
    cta_tiler: Any,
    num_multicast: int = 1,
    *,
    internal_type: Any = None,
) -> TmaInfo:
    """A TMA atom for tiles of `cta_tiler` of a tensor in global memory, of up to 5 modes, which may
    be nested. The tiler has extents by mode, or is a layout of the tile's coordinates.

    `smem_layout` is that of one tile, swizzled or not. With `num_multicast`, each of so many blocks
    loads an equal part of the tile for all. `internal_type`, of the same width, is what the
    elements are in shared memory: their bits stay. Host code only.
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
            f"internal_type={dtype.__name__} has {dtype.width} bits, the tensor's "
            f"{gmem_tensor.element_type.__name__} has {gmem_tensor.element_type.width}"
        )
    if isinstance(op, CopyReduceBulkTensorTileS2GOp):
        _check_reduction(op.kind, dtype)
    modes = modes_of(gmem_tensor)
    box = find_box(smem_layout, tile_of(gmem_tensor, cta_tiler), modes, dtype.width)
    part = divided(box, num_multicast, dtype.width)
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
    smem_layout: Any,
    mma_tiler_mnk: Any,
    tiled_mma: Any,
    cluster_shape_vmnk: Any = None,
    internal_type: Any = None,
) -> TmaInfo:
    """A TMA atom for tiles (M, K) of operand A, multicast to the blocks of the cluster along N."""
    m, _, k = mma_tiler_mnk
    blocks = _along(op, cluster_shape_vmnk, 2)
    return make_tiled_tma_atom(
        op, gmem_tensor, smem_layout, (m, k), blocks, internal_type=internal_type
    )


@takes_location
def make_tiled_tma_atom_B(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    mma_tiler_mnk: Any,
    tiled_mma: Any,
    cluster_shape_vmnk: Any = None,
    internal_type: Any = None,
) -> TmaInfo:
    """A TMA atom for tiles (N, K) of operand B, multicast to the blocks of the cluster along M."""
    _, n, k = mma_tiler_mnk
    blocks = _along(op, cluster_shape_vmnk, 1)
    return make_tiled_tma_atom(
        op, gmem_tensor, smem_layout, (n, k), blocks, internal_type=internal_type
    )


def _along(op: Any, cluster_shape_vmnk: Any, mode: int) -> int:
    """How many blocks of the cluster, a shape or a layout (V, M, N, K), get a tile."""
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
    """Both tensors as ((box, boxes), other modes...): mode 0 of each is one tile, grouped.

    `cta_layout` are the blocks that load the tile together, `cta_coord` is this one of them.
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
    """The elements of a box in the order of shared memory are where the tensor map says."""
    if gmem_tensor.has_memory:
        raise DSLTypeError(
            f"tma_partition takes the coordinate tensor that came with {atom}, not {gmem_tensor}"
        )
    found = [walk[:3:2] for walk in walked(box, paths_of(gmem_tensor.iterator))]
    wanted = [(n, mode) for n, mode in zip(atom.box.extents, atom.box.order, strict=True) if n > 1]
    if found != wanted:
        raise DSLTypeError(
            f"the tile {tile} in shared memory has its elements in another order than {atom} "
            f"copies them: {found} (extent, mode), not {wanted}",
            hint="make the atom with the layout of one stage of this tensor",
        )


@takes_location
def create_tma_multicast_mask(cta_layout_vmnk: Any, cta_coord_vmnk: Any, mcast_mode: int) -> Any:
    """The blocks of the cluster that differ from this one in mode `mcast_mode` only, as bits."""
    mask = algebra.make_layout_image_mask(cta_layout_vmnk, cta_coord_vmnk, mcast_mode)
    return Int16(mask) if type(mask) is int else mask.to(Int16)


@takes_location
def prefetch_descriptor(atom: TmaAtom) -> None:
    """Have the atom's tensor map in the descriptor cache before its first use."""
    prefetch_tensor_map(_atom(atom).tensor_map)


@takes_location
def copy_tensormap(atom: TmaAtom, tensormap_ptr: Any) -> None:
    """A warp copies the atom's tensor map, 128 bytes, to shared or global memory."""
    copy_tensor_map(_atom(atom).tensor_map, tensormap_ptr)


@takes_location
def update_tma_descriptor(atom: TmaAtom, gmem_tensor: Tensor, tensormap_ptr: Any) -> None:
    """One thread makes the tensor map at `tensormap_ptr` one of `gmem_tensor`: its address, extents
    and strides replace those that are there. It has the modes of the atom's own tensor, the same of
    them contiguous; address and other strides are multiples of 16 bytes.
    """
    atom = _atom(atom)
    shape, stride, _ = modes_of(gmem_tensor)
    order = atom.box.order
    if len(shape) != len(order) or gmem_tensor.element_type is not atom.dtype:
        raise DSLTypeError(
            f"{gmem_tensor} does not fit {atom}: it needs {len(order)} modes of "
            f"{atom.dtype.__name__}"
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
    if isinstance(atom, TmaInfo):
        atom = atom.atom
    if not isinstance(atom, TmaAtom):
        raise DSLTypeError(f"{atom} is no TMA atom", hint="make one with make_tiled_tma_atom")
    return atom


@takes_location
def prefetch(atom: TmaAtom, src: Tensor, *, tma_desc_ptr: Any = None) -> None:
    """Have a tile that a TMA load will copy in the L2 cache: called by a whole warp. `src` is a
    tensor that `tma_partition` gave.
    """
    _atom(atom).prefetch_tensors(src, tma_desc_ptr)
