"""TMA atoms: the operations, and copies by one of them of partitioned tensors (PTX ISA 9.7.9.27).

`nvgpu.tma` makes atoms and partitions tensors for them.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute import algebra, arch
from basedsl_cute.arch.tma import (
    REDUCTIONS,
    tma_load,
    tma_prefetch,
    tma_reduce,
    tma_store,
)
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.hardware.tensor_map_format import REDUCIBLE, SWIZZLE_128B_ATOM_32B, SWIZZLE_BYTES
from basedsl_cute.host.tensor_map_argument import TensorMapValue
from basedsl_cute.nvgpu.tma_box import (
    Box,
    leaves,
    swizzle_number,
)
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


def check_reduction(kind: str, dtype: Any) -> None:
    """DSLTypeError unless the TMA unit has this reduction of elements of `dtype`."""
    name = {"TFloat32": "Float32"}.get(dtype.__name__, dtype.__name__)
    if name not in REDUCIBLE[kind]:
        raise DSLTypeError(
            f"the TMA unit has no reduction {kind!r} of {dtype.__name__}",
            hint=f"it has {kind!r} of {', '.join(REDUCIBLE[kind])}",
        )


def both(what: str, x: Any, other: str, y: Any) -> tuple[tuple[str, None], ...]:
    """Return notes that say what two operands are."""
    return (f"{what} is {x}", None), (f"{other} is {y}", None)


LOADS = (CopyBulkTensorTileG2SOp, CopyBulkTensorTileG2SMulticastOp)
STORES = (CopyBulkTensorTileS2GOp, CopyReduceBulkTensorTileS2GOp)


class TmaAtom:
    """A TMA copy of one tensor: its `tensor_map`, and its static facts. `make_tiled_tma_atom` makes
    it.

    `op` is the operation, `dtype` the element type of the tile in shared memory, `box` what one
    instruction moves, and `units` the number of elements that one of the tensor map's is.
    """

    def __init__(
        self, tensor_map: TensorMapValue, op: Any, dtype: Any, box: Box, units: int = 1
    ) -> None:
        self.tensor_map = tensor_map
        self.op = op
        self.dtype = dtype
        self.box = box
        self.units = units  # elements that one of the tensor map is

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self.tensor_map,)

    def __dsl_static__(self) -> Any:
        return (self.op, self.dtype, self.box, self.units)

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> TmaAtom:
        return type(self)(parts[0], self.op, self.dtype, self.box, self.units)

    @property
    def value_type(self) -> Any:
        """The element type of the tile in shared memory."""
        return self.dtype

    def __str__(self) -> str:
        return f"{type(self.op).__name__} of {self.dtype.__name__}, box {self.box.extents}"

    def _place(self, coordinate: Any) -> list[Any]:
        """Return a coordinate of the tensor in the order of the tensor map's modes."""
        flat = leaves(coordinate)
        first, *rest = (flat[mode] for mode in self.box.order)
        return [first if self.units == 1 else first // self.units, *rest]

    def _instruction(self, coordinate: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return the coordinates of the instruction for a box, and what else it takes."""
        return self._place(coordinate), {}

    def _check_shared(self, shared: Tensor) -> None:
        """Check that the shared tensor has the swizzle and element width that the tensor map was
        encoded with.

        TMA would write elements where another tensor does not look for them: DSLTypeError.
        """
        if shared.element_type.width != self.dtype.width:
            raise DSLTypeError(
                f"the TMA atom has elements of {self.dtype.width} bits, its shared tensor of "
                f"{shared.element_type.width}",
                notes=both("the atom", self, "the shared tensor", shared),
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
                notes=both("the atom", self, "the shared tensor", shared),
                hint="make the tensor with the layout that the atom was made with: "
                "storage.tile.get_tensor(layout.outer, swizzle=layout.inner)",
            )

    def _checked(self, src: Tensor, dst: Tensor, is_load: bool) -> tuple[Tensor, Tensor, int]:
        """Return the shared tensor, the coordinate tensor and the size of both; DSLTypeError unless
        these are one tile of this atom.
        """
        shared, coordinates = (dst, src) if is_load else (src, dst)
        if shared.memspace != "smem" or coordinates.has_memory:
            raise DSLTypeError(
                "a TMA copy is between shared memory and its coordinate tensor",
                notes=both("the source", src, "the destination", dst),
                hint="partition both with tma_partition",
            )
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
        return shared, coordinates, size

    def prefetch_tensors(self, src: Tensor, tma_desc_ptr: Any = None) -> None:
        """Load a partitioned tile into the L2 cache: `cute.prefetch` by this atom.

        `src` is the part of the coordinate tensor. The tensor map is the atom's own, or one in
        global memory at `tma_desc_ptr`. Raises DSLTypeError for a store, or another tensor.
        """
        if not isinstance(self.op, LOADS) or src.has_memory:
            raise DSLTypeError(
                "prefetch takes a TMA load and its coordinate tensor",
                notes=both("the atom", self, "the tensor", src),
                hint="partition the tensor with tma_partition",
            )
        size, each = int(algebra.size(src.shape)), self.box.size
        tensor_map = self.tensor_map if tma_desc_ptr is None else tma_desc_ptr
        with arch.elect_one():
            for at in range(0, size, each):
                tile = algebra.add_offset(src.iterator, src.layout(at))
                where, more = self._instruction(tile)
                tma_prefetch(tensor_map, where, **more)

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
        """Copy `src` to `dst`, partitioned tensors: `cute.copy` by this atom, called by a whole
        warp. One is in shared memory, the other is of the coordinate tensor; both are whole boxes
        of one tile.

        `pred` is a Boolean: nothing is copied where it is False. `tma_bar_ptr` is the mbarrier that
        the bytes of a load complete, `mcast_mask` has the blocks of a multicast as bits, and
        `cache_policy` is an L2 cache policy of 64 bits, for loads and stores. Raises DSLTypeError
        for tensors that are not so, and for a load without what it needs.

        The tensor map is the atom's own, or one in global memory at `tma_desc_ptr` that was made
        from it. An atom that is not for multicasts loads for its own block, whatever `mcast_mask`
        says.

        In a loop with `prefetch_stages=` a load needs no barrier: all threads of the block call
        it, one of them issues it, and the tile has landed after the loop's `sync_threads()`.
        """
        tensor_map = self.tensor_map if tma_desc_ptr is None else tma_desc_ptr
        is_load = isinstance(self.op, LOADS)
        shared, coordinates, size = self._checked(src, dst, is_load)
        if not isinstance(self.op, CopyBulkTensorTileG2SMulticastOp):
            mcast_mask = None
        elif mcast_mask is None:
            raise DSLTypeError("a multicast needs the blocks that get the tile: mcast_mask=")
        unbound = is_load and tma_bar_ptr is None
        if unbound and (pred is not None or mcast_mask is not None):
            raise DSLTypeError("a TMA load needs the mbarrier that it completes: tma_bar_ptr=")
        each = self.box.size
        # The loop that waits for a load without a barrier has one thread issue it.
        with predicated(pred), contextlib.nullcontext() if unbound else arch.elect_one():
            for at in range(0, size, each):
                place = shared.pointer.moved(shared.layout(at))
                tile = algebra.add_offset(coordinates.iterator, coordinates.layout(at))
                where, more = self._instruction(tile)
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
                        **more,
                    )
                elif isinstance(self.op, CopyReduceBulkTensorTileS2GOp):
                    tma_reduce(tensor_map, place, where, self.op.kind)
                else:
                    tma_store(tensor_map, place, where, cache_hint=cache_policy, **more)


def _swizzle_text(number: int | None) -> str:
    if not number:
        return "no swizzle" if number == 0 else "one that TMA does not have"
    chunks = " of chunks of 32" if number == SWIZZLE_128B_ATOM_32B else ""
    return f"a swizzle of {SWIZZLE_BYTES[number]} bytes{chunks}"


class TmaInfo:
    """A TMA `atom`, its coordinate tensor (`tma_tensor`), and the layout of a tile in shared memory
    (`smem_layout`).

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
