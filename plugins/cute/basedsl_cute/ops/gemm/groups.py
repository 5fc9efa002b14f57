"""The groups of a grouped product: their shapes, strides and addresses in device memory, and the
tensor maps that a block makes of them.

Kinds of elements and contiguous modes are those of `ops.hopper.config` or `ops.blackwell.config`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.utils import LayoutEnum
from basedsl_cute.utils.tensormap_manager import TensorMapManager, TensorMapUpdateMode

__all__ = [
    "WORDS",
    "OwnMaps",
    "Tables",
    "can_tma_store",
    "change_operands",
    "contiguous_mode",
    "is_tma_aligned",
    "patterns",
    "tables",
]

WORDS = 16  # of 8 bytes: a tensor map


class Tables(NamedTuple):
    """The tables of groups in device memory: the parameters of `grouped_gemm`."""

    sizes: Any
    strides: Any
    addresses: Any

    def matrix(self, group: Any, operand: int, shape: Any, kinds: Any, align: int = 16) -> Any:
        """The tensor A (0), B (1) or C (2) of a group, assumed to be aligned to `align` bytes."""
        dtype = (kinds.a, kinds.b, kinds.c)[operand]
        address = self.addresses[group, operand]
        pointer = cute.make_ptr(dtype, address, cute.AddressSpace.gmem, assumed_align=align)
        stride = [self.strides[group, operand, i] for i in range(2)]
        stride[contiguous_mode(operand, kinds)] = 1
        return cute.make_tensor(pointer, cute.make_layout(shape, stride=tuple(stride)))


def contiguous_mode(operand: int, kinds: Any) -> int:
    """The contiguous mode, 0 or 1, of A (0), B (1) or C (2)."""
    major = (kinds.major_a, kinds.major_b, kinds.major_c)[operand]
    return 1 if major is LayoutEnum.ROW_MAJOR else 0


class OwnMaps:
    """The tensor maps of one block in global memory, and its scratch memory for updating them."""

    __dsl_leaf__ = True

    def __init__(self, maps: Any, block: Any, scratch: Any, mode: TensorMapUpdateMode) -> None:
        self._manager = TensorMapManager(mode)
        self._scratch = scratch
        self._places = cute.slice_(maps, (block, None, None)).iterator

    def begin(self, atom: Any, which: int, warp: Any) -> None:
        """Have warp `warp` copy the atom's tensor map to where it is updated."""
        in_smem = self._manager.tensormap_update_mode is TensorMapUpdateMode.SMEM
        at = (self._scratch if in_smem else self._places) + WORDS * which
        self._manager.init_tensormap_from_atom(atom, at, warp)

    def place(self, which: Any) -> Any:
        """The address of tensor map `which` in global memory."""
        return self._places + WORDS * which

    def change(self, atoms: Any, which: Any, tensors: Any, warp: Any) -> None:
        """Have warp `warp` update the maps from `which` on to describe `tensors`."""
        places = [self.place(which + i) for i in range(len(atoms))]
        staging = [self._scratch + WORDS * (which + i) for i in range(len(atoms))]
        self._manager.update_tensormap(tensors, atoms, places, warp, staging)
        for place in places:
            self._manager.fence_tensormap_update(place)


@cute.jit
def change_operands(
    own, atoms, tables, group, extents, kinds: cute.Constexpr, warp: cute.Constexpr
):  # fmt: skip
    """Have warp `warp` update the maps of A and B for a group whose (M, N, K) are `extents`."""
    m, n, k = extents
    # Wait until the copies issued so far have read their tensor maps.
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0, read=True)
    tensors = tables.matrix(group, 0, (m, k), kinds), tables.matrix(group, 1, (n, k), kinds)
    for x, operand in zip(tensors, (0, 1), strict=True):
        assert is_tma_aligned(x, contiguous_mode(operand, kinds)), (
            "addresses and strides of A and B must be multiples of 16 bytes"
        )
    own.change(atoms, 0, tensors, warp)


def is_tma_aligned(x: Any, along: int) -> Any:
    """True if the address, and the stride of the mode that is not `along`, the contiguous one, are
    multiples of 16 bytes.
    """
    stride = cute.Int64(x.stride[1 - along]) * (x.element_type.width // 8)
    return (x.iterator.toint() | stride) % 16 == 0


def can_tma_store(c: Any, along: int) -> Any:
    """True if C is `is_tma_aligned` and its contiguous extent is a multiple of 16 bytes, too."""
    return is_tma_aligned(c, along) & (c.shape[along] * (c.element_type.width // 8) % 16 == 0)


def patterns(maps: Any, kinds: Any) -> list[Any]:
    """Return tensors (64, 64) of the elements of A, B and C with the same mode contiguous: what the
    atoms' own tensor maps describe, until a block updates its copies. `maps` lends its memory.
    """
    return [
        cute.make_tensor(
            cute.recast_ptr(maps.iterator, dtype=dtype),
            cute.make_layout((64, 64), stride=(64, 1) if contiguous_mode(i, kinds) else (1, 64)),
        )
        for i, dtype in enumerate((kinds.a, kinds.b, kinds.c))
    ]


def tables(triples: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The tables `sizes`, `strides` and `addresses` of `grouped_gemm`, as NumPy arrays.

    `triples` are the groups (a, b, c), of NumPy arrays or PyTorch tensors: (M, K), (N, K), (M, N).
    """
    sizes, strides, addresses = [], [], []
    for a, b, c in triples:
        sizes.append((a.shape[0], b.shape[0], a.shape[1], 1))
        if isinstance(a, np.ndarray):
            strides.append([[s // x.itemsize for s in x.strides] for x in (a, b, c)])
            addresses.append([x.ctypes.data for x in (a, b, c)])
        else:
            strides.append([x.stride() for x in (a, b, c)])
            addresses.append([x.data_ptr() for x in (a, b, c)])
    return (
        np.array(sizes, np.int32).reshape(-1, 4),
        np.array(strides, np.int32).reshape(-1, 3, 2),
        np.array(addresses, np.int64).reshape(-1, 3),
    )
