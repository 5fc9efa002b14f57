"""TMA copies of rows by their numbers: four rows of a matrix an instruction (sm_100).

A tile has its rows from anywhere in a matrix of global memory; `rows=` of `cute.copy` has the
number of each:

    atom, tma_x = make_tiled_tma_atom(CopyBulkTensorTileGather4G2SOp(), x, smem_layout, (16, 64))
    tXsX, tXgX = tma_partition(atom, 0, cute.make_layout(1),
                               cute.group_modes(sX, 0, 2),
                               cute.group_modes(cute.local_tile(tma_x, (16, 64), (0, None)), 0, 2))
    cute.copy(atom, tXgX[None, k], tXsX[None, stage], rows=numbers, tma_bar_ptr=barrier)

PTX ISA 5.5, tensor "Tiled::gather4" and "Tiled::scatter4" modes, and 9.7.9.27,
"cp.async.bulk.tensor".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Int32, as_numeric
from basedsl_cute import algebra, arch
from basedsl_cute.arch.tma import GATHER4, SCATTER4, tma_load, tma_store
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.host.tensor_map_argument import TensorMapValue
from basedsl_cute.nvgpu.tma_atom import TmaAtom
from basedsl_cute.nvgpu.tma_box import Box, Modes, check_piece, leaves
from basedsl_cute.tensors.tensor import Tensor

_ROWS = 4  # of an instruction


@dataclass(frozen=True)
class CopyBulkTensorTileGather4G2SOp:
    """The TMA copy of chosen rows of a matrix from global to shared memory (sm_100).

    PTX `cp.async.bulk.tensor.2d.tile::gather4`, four rows each. `cute.copy` with its atom takes
    `rows=`, the rows' numbers, and `tma_bar_ptr=`. Rows outside of the matrix, also negative ones,
    read as zeros; a row may come several times. `cta_group` is as for `CopyBulkTensorTileG2SOp`.
    """

    cta_group: int = 1


@dataclass(frozen=True)
class CopyBulkTensorTileGather4G2SMulticastOp:
    """The TMA copy of chosen rows of a matrix to several blocks of the cluster (sm_100f).

    PTX `cp.async.bulk.tensor.2d.tile::gather4` with `.multicast::cluster`. `cute.copy` with its
    atom takes `rows=`, a tensor of all rows' numbers, `tma_bar_ptr=` and `mcast_mask=`, the blocks
    as bits. Each of the blocks gathers an equal part of the rows for all; the bytes count at the
    same mbarrier of each. `cta_group` is as for `CopyBulkTensorTileG2SMulticastOp`.
    """

    cta_group: int = 1


@dataclass(frozen=True)
class CopyBulkTensorTileScatter4S2GOp:
    """The TMA copy of a tile from shared memory to chosen rows of a matrix (sm_100f).

    PTX `cp.async.bulk.tensor.2d.tile::scatter4`, four rows each. `cute.copy` with its atom takes
    `rows=`, the rows' numbers, none negative and each once; rows beyond the matrix are not written.
    It is complete when its bulk group is: see `cute.arch.cp_async_bulk_commit_group`.
    """


_GATHERS = (CopyBulkTensorTileGather4G2SOp, CopyBulkTensorTileGather4G2SMulticastOp)
BY_ROWS = (*_GATHERS, CopyBulkTensorTileScatter4S2GOp)


def box_of_rows(
    box: Box, modes: Modes, tiler: Any, bits: int, units: int, blocks: int = 1
) -> tuple[Box, int]:
    """Return the box of one row that the tensor map of a gather or scatter has, and how many rows a
    tile has.

    `box` is the largest part of a tile of extents `tiler` that one copy moves, of a tensor of
    `modes`. Each of `blocks` blocks gathers an equal part of its rows. Raises DSLTypeError unless
    that is some times four whole rows of a matrix.
    """
    if len(modes.shape) != 2 or units != 1 or not _are_extents(tiler):
        raise DSLTypeError(
            "a gather or scatter of rows is of a matrix of two plain modes, by extents of a tile",
            notes=((f"its modes are {modes.shape}, the tile is {tiler}", None),),
        )
    columns, together = box.extents
    rows = tiler[box.order[1]]
    if together % _ROWS:
        raise DSLTypeError(
            f"rows are gathered by {_ROWS}, and the shared layout has {together} together",
            hint=f"take a multiple of {_ROWS} rows, and a shared layout that has the rows of as "
            "many columns compactly",
        )
    if together % (_ROWS * blocks):
        raise DSLTypeError(
            f"{together} rows cannot be gathered in fours by {blocks} blocks",
            hint=f"take a multiple of {_ROWS * blocks} rows, or fewer blocks",
        )
    if columns * _ROWS < tiler[0] * tiler[1]:
        check_piece((columns, _ROWS), bits)
    return box._replace(extents=(columns, 1)), rows


def _are_extents(tiler: Any) -> bool:
    return isinstance(tiler, tuple) and len(tiler) == 2 and all(type(n) is int for n in tiler)


class RowsAtom(TmaAtom):
    """A gather or scatter of rows of one matrix. `make_tiled_tma_atom` makes it.

    A tile has `rows` rows, of which each of `blocks` blocks gathers an equal part.
    """

    def __init__(
        self, tensor_map: TensorMapValue, op: Any, dtype: Any, box: Box, rows: int, blocks: int = 1
    ) -> None:
        super().__init__(tensor_map, op, dtype, box)
        self.rows = rows
        self.blocks = blocks

    def __dsl_static__(self) -> Any:
        return (*super().__dsl_static__(), self.rows, self.blocks)

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> RowsAtom:
        return RowsAtom(parts[0], self.op, self.dtype, self.box, self.rows, self.blocks)

    def copy_tensors(
        self,
        src: Tensor,
        dst: Tensor,
        pred: Any = None,
        *,
        rows: Any = None,
        tma_bar_ptr: Any = None,
        mcast_mask: Any = None,
        cache_policy: Any = None,
        tma_desc_ptr: Any = None,
    ) -> None:
        """Copy partitioned tensors: `cute.copy` by this atom, called by a whole warp.

        `rows` are the numbers of the tile's rows in the matrix, Int32: a tuple, or a tensor, which
        a multicast needs; of a multicast `mcast_mask` has the blocks as bits.
        """
        is_load = isinstance(self.op, _GATHERS)
        shared, coordinates, size = self._checked(src, dst, is_load)
        if not isinstance(self.op, CopyBulkTensorTileGather4G2SMulticastOp):
            mcast_mask = None
        elif mcast_mask is None:
            raise DSLTypeError("a multicast needs the blocks that get the tile: mcast_mask=")
        if is_load and tma_bar_ptr is None:
            raise DSLTypeError("a TMA gather needs the mbarrier that it completes: tma_bar_ptr=")
        self._check_rows(rows)
        tensor_map = self.tensor_map if tma_desc_ptr is None else tma_desc_ptr
        each = self.box.extents[0] * _ROWS
        part = self.box.size // self.blocks
        with predicated(pred), arch.elect_one():
            for at in (
                box + own for box in range(0, size, self.box.size) for own in range(0, part, each)
            ):
                place = shared.pointer.moved(shared.layout(at))
                where = self._four_rows(coordinates, at, rows)
                if is_load:
                    tma_load(
                        tensor_map,
                        place,
                        tma_bar_ptr,
                        where,
                        mcast_mask=mcast_mask,
                        cache_hint=cache_policy,
                        blocks=int(self.op.cta_group),
                        mode=GATHER4,
                    )
                else:
                    tma_store(tensor_map, place, where, cache_hint=cache_policy, mode=SCATTER4)

    def _check_rows(self, rows: Any) -> None:
        if isinstance(rows, Tensor):
            count, types = algebra.size(rows.shape), [rows.element_type]
        elif isinstance(rows, Sequence):
            count, types = len(rows), [type(as_numeric(row)) for row in rows]
        else:
            raise DSLTypeError(
                f"a copy by {self} needs the numbers of its rows: rows=",
                hint="a tuple or a tensor of Int32",
            )
        if count != self.rows:
            raise DSLTypeError(f"rows= has {count} numbers, for a tile of {self.rows} rows")
        other = next((dtype for dtype in types if dtype is not Int32), None)
        if other is not None:
            raise DSLTypeError(f"rows= has numbers of {other.__name__}, not Int32")

    def _four_rows(self, coordinates: Tensor, at: int, rows: Any) -> list[Any]:
        """Return the column of the tile's element `at`, and the numbers of four rows from its."""
        tile = algebra.add_offset(coordinates.iterator, coordinates.layout(at))
        flat = leaves(tile)
        column, first = (flat[mode] for mode in self.box.order)
        if type(first) is not int and self.blocks > 1:  # a block's own part of the rows
            if not isinstance(rows, Tensor):
                raise DSLTypeError(
                    "a multicast gather takes rows= as a tensor",
                    hint="the row at which a block's part begins is known in a run only",
                )
            return [column, *(rows[first + i] for i in range(_ROWS))]
        if type(first) is not int or not 0 <= first <= self.rows - _ROWS:
            raise DSLTypeError(
                f"a tile of a gather or scatter begins at row 0 of its coordinate tensor, which "
                f"has {self.rows} rows",
                hint="choose the tile's columns only, as in local_tile(tensor, tile, (0, k))",
            )
        return [column, *(rows[first + i] for i in range(_ROWS))]
