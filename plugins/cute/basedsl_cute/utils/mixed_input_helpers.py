"""`utils.mixed_input_helpers`: parts of GEMM kernels that convert A on its way to tcgen05.mma.

A has elements of 4 or 8 bits, B of 16. Four warps take tiles of A from shared memory, convert them
to B's type, may multiply them by scale factors, and store them where the MMA reads them: to tensor
memory, or to shared memory again. A scale factor is shared by a granule of `gran_m` rows and
`gran_k` elements along K; layouts of factors have strides of 0 within a granule, so that they are
indexed and partitioned as A is.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from basedsl import DSLTypeError, Numeric
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import CopyAtom, TiledCopy, make_copy_atom, make_tiled_copy_tv
from basedsl_cute.atoms.copy_tensors import copy
from basedsl_cute.atoms.mma import TiledMma
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.hardware.tensor_memory import TMEM_LANES
from basedsl_cute.hardware.unsupported import NotOfferedError, unsupported_names
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.nvgpu.common import CopyUniversalOp
from basedsl_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from basedsl_cute.nvgpu.tma import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from basedsl_cute.tensors.make_tensor import make_rmem_tensor
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.tensor_ssa import TensorSSA
from basedsl_cute.utils import blackwell_helpers
from basedsl_cute.utils.layout_enum import LayoutEnum

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)

__all__ = [
    "TransformMode",
    "compute_smem_layout",
    "cvt_tensor_a",
    "get_copy_atom_a_transform",
    "get_gmem_layout_scale",
    "get_smem_layout_scale",
    "get_tma_atom_kind",
    "get_transform_a_source",
    "store_transformed_a",
    "transform_partition",
]

_THREADS = 4 * WARP_SIZE
_VALUES = 8  # of 16 bits: what a thread stores to shared memory at once


class TransformMode(enum.Enum):
    """The work of the warps that transform A: they convert it, or also multiply by factors."""

    ConvertOnly = enum.auto()
    ConvertScale = enum.auto()


@takes_location
def get_transform_a_source(a_major_mode: OperandMajorMode) -> OperandSource:
    """Return where the MMA reads the transformed A: tensor memory if A is K-major, as operands
    there are, else shared memory.
    """
    return OperandSource.TMEM if _is_k_major(a_major_mode) else OperandSource.SMEM


def _is_k_major(major: Any) -> bool:
    if isinstance(major, LayoutEnum):
        return major is LayoutEnum.ROW_MAJOR
    try:
        return OperandMajorMode(major) is OperandMajorMode.K
    except ValueError:
        raise DSLTypeError(
            f"a major mode is an OperandMajorMode or a LayoutEnum, not {major!r}",
            hint="tcgen05.OperandMajorMode.K or .MN",
        ) from None


@takes_location
def compute_smem_layout(
    tiled_mma: TiledMma,
    mma_tiler_mnk: tuple[int, int, int],
    a_dtype: type[Numeric],
    b_dtype: type[Numeric],
    load_stages: int,
    trans_stages: int,
) -> tuple[Any, Any, Any]:
    """Return the layouts of A as it is loaded, of A transformed, and of B, each of
    `make_smem_layout_a` or `_b`.

    `mma_tiler_mnk` is the tile (M, N, K) of the MMA in elements; `a_dtype` is the type of A in
    global memory, and `b_dtype` that of B and of the transformed A. A and B as they are loaded have
    `load_stages` stages, the transformed A has `trans_stages`. Of a transformed A in tensor memory
    only the shape counts: `tiled_mma.make_fragment_A(layout.outer)`.
    """
    return (
        blackwell_helpers.make_smem_layout_a(tiled_mma, mma_tiler_mnk, a_dtype, load_stages),
        blackwell_helpers.make_smem_layout_a(tiled_mma, mma_tiler_mnk, b_dtype, trans_stages),
        blackwell_helpers.make_smem_layout_b(tiled_mma, mma_tiler_mnk, b_dtype, load_stages),
    )


@takes_location
def get_gmem_layout_scale(
    shape_mkl: Any, scale_granularity_m: int, scale_granularity_k: int, scale_major_mode: Any
) -> algebra.Layout:
    """Return the layout ((gran_m, M granules), (gran_k, K granules), L) of scale factors in global
    memory, for an A of `shape_mkl` elements; extents may be dynamic.

    `scale_major_mode` says which granules are contiguous, those along K or along M; batches follow
    each other. Factors of the last granules count where the granularity does not divide A.
    """
    if algebra.rank(shape_mkl) != 3:
        raise DSLTypeError(f"get_gmem_layout_scale takes the (M, K, L) of A, not {shape_mkl}")
    m, k, batches = shape_mkl
    rows = algebra.ceil_div(m, scale_granularity_m)
    columns = algebra.ceil_div(k, scale_granularity_k)
    steps = (columns, 1) if _is_k_major(scale_major_mode) else (1, rows)
    return algebra.make_layout(
        ((scale_granularity_m, rows), (scale_granularity_k, columns), batches),
        stride=((0, steps[0]), (0, steps[1]), rows * columns),
    )


@takes_location
def get_smem_layout_scale(
    mma_tiler_mnk: tuple[int, int, int],
    use_2cta_instrs: bool,
    scale_granularity_m: int,
    scale_granularity_k: int,
    scale_major_mode: Any,
    dtype: type[Numeric],
    num_stages: int,
) -> algebra.Layout:
    """Return the layout (M, K, stage) of one block's scale factors in shared memory, for the tile
    of A that it transforms.

    `mma_tiler_mnk` is the tile (M, N, K) of the MMA, of which a block has half the rows if
    `use_2cta_instrs`. A granule that is larger than the tile counts as the tile. `scale_major_mode`
    is that of the factors in global memory and `dtype` their type; each of `num_stages` stages
    begins at a multiple of 128 bytes, where TMA may write. Raises DSLTypeError for a granularity
    that does not divide the tile.
    """
    m, k = mma_tiler_mnk[0] // (2 if use_2cta_instrs else 1), mma_tiler_mnk[2]
    rows = _granule("M", m, scale_granularity_m)
    columns = _granule("K", k, scale_granularity_k)
    down, across = m // rows, k // columns
    steps = (across, 1) if _is_k_major(scale_major_mode) else (1, down)
    stage = algebra.round_up(down * across, 8 * 128 // dtype.width)
    return algebra.make_layout(
        ((rows, down), (columns, across), num_stages),
        stride=((0, steps[0]), (0, steps[1]), stage),
    )


def _granule(mode: str, extent: int, granularity: int) -> int:
    found = min(extent, granularity)
    if granularity <= 0 or extent % found or granularity % found:
        raise DSLTypeError(
            f"granules of {granularity} scale factors along {mode} do not fit a tile of {extent}",
            hint="take a granularity that divides the tile, or a multiple of the tile",
        )
    return found


@takes_location
def get_tma_atom_kind(is_mcast: Any, use_2cta_instrs: bool, is_b: bool) -> Any:
    """Return the TMA load of B, or with `is_b` False of A and its factors; multicast if `is_mcast`.

    B goes to the pair's MMA, whose barrier its loads signal; A goes to the warps of each block
    that transform it, and so its loads signal their own block also where blocks are paired.
    """
    group = CtaGroup.TWO if use_2cta_instrs and is_b else CtaGroup.ONE
    return CopyBulkTensorTileG2SMulticastOp(group) if is_mcast else CopyBulkTensorTileG2SOp(group)


@takes_location
def get_copy_atom_a_transform(
    mma_dtype: type[Numeric],
    use_2cta_instrs: bool,
    transform_a_source: OperandSource,
    a_smem_shape: Any,
    a_dtype: type[Numeric],
) -> tuple[CopyAtom, CopyAtom]:
    """Return the atoms that load A from shared memory to registers and that store it transformed.

    `mma_dtype` is the type of the transformed A, `a_dtype` that of A, and `a_smem_shape` the shape
    ((M, K), MMA_M, MMA_K, ...) of one block's A in shared memory. To tensor memory, a thread stores
    a row of up to 256 elements at once. Raises DSLTypeError for a block with other than 128 rows,
    which do not lie there one to a lane.
    """
    m, k, mma_m, mma_k, _ = _operand_shape("get_copy_atom_a_transform", a_smem_shape)
    columns = int(algebra.size(k)) * int(algebra.size(mma_k))
    if transform_a_source is OperandSource.TMEM:
        rows = int(algebra.size(m)) * int(algebra.size(mma_m))
        if rows != TMEM_LANES:
            raise DSLTypeError(
                f"A is stored to tensor memory by blocks of {TMEM_LANES} rows, not of {rows}",
                notes=(("pairs of blocks" if use_2cta_instrs else "single blocks", None),),
                hint="take a tile of M = 128, or of 256 by pairs of blocks",
            )
        words = columns * mma_dtype.width // 32
        repeat = algebra.widest_repeat("32x32b", words * 32)
        store = make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition(repeat)), mma_dtype)
        widest = 128
    else:
        store = make_copy_atom(
            CopyUniversalOp(), mma_dtype, num_bits_per_copy=_VALUES * mma_dtype.width
        )
        widest = _VALUES * a_dtype.width
    bits = min(widest, columns * a_dtype.width)
    return make_copy_atom(CopyUniversalOp(), a_dtype, num_bits_per_copy=bits), store


def _operand_shape(caller: str, shape: Any) -> tuple[Any, Any, Any, Any, tuple[Any, ...]]:
    """Return M, K, MMA_M, MMA_K and further modes of a shape; DSLTypeError for another profile."""
    match shape:
        case ((m, k), mma_m, mma_k, *rest):
            return m, k, mma_m, mma_k, tuple(rest)
    raise DSLTypeError(
        f"{caller} takes A of shape ((M, K), MMA_M, MMA_K, stage), not {shape}",
        hint="allocate it with a layout of compute_smem_layout()",
    )


def _by_rows(tensor: Tensor) -> Tensor:
    """Return ((M, K), MMA_M, MMA_K, ...) as ((M, MMA_M), (K, MMA_K), ...)."""
    caller = "transform_partition"
    if not isinstance(tensor, Tensor) or not isinstance(tensor.layout, algebra.Layout):
        raise DSLTypeError(
            f"{caller} takes tensors with the swizzle on the pointer, not {tensor}",
            hint="allocate_tensor(dtype, layout.outer, 1024, swizzle=layout.inner)",
        )
    m, k, mma_m, mma_k, rest = _operand_shape(caller, tensor.layout.shape)
    dm, dk, d_mma_m, d_mma_k, steps = _operand_shape(caller, tensor.layout.stride)
    layout = algebra.Layout(((m, mma_m), (k, mma_k), *rest), ((dm, d_mma_m), (dk, d_mma_k), *steps))
    return Tensor(tensor.iterator, layout)


@takes_location
def transform_partition(
    transform_a_source: OperandSource,
    transform_mode: TransformMode,
    copy_atom_a_input: CopyAtom,
    copy_atom_a_transform: CopyAtom,
    sA_input: Tensor,
    A_transform: Tensor,
    transform_local_tidx: Any,
) -> tuple[TiledCopy, TiledCopy, Tensor, Tensor]:
    """Return the tiled copies of A from shared memory and to its place, and a thread's parts of
    `sA_input` and `A_transform`, each (values, M, K, stage).

    The atoms are those of `get_copy_atom_a_transform`. Both tensors are ((M, K), MMA_M, MMA_K,
    stage), in memory of which `transform_a_source` names the second. `transform_local_tidx` is this
    thread's number among those of the four warps, from 0. In `TransformMode.ConvertScale` the first
    copy's `get_slice(thread).partition_S(scales)` partitions scale factors (M, K, stage) likewise.
    """
    if not isinstance(transform_mode, TransformMode):
        raise DSLTypeError(f"the mode of a transform is a TransformMode, not {transform_mode!r}")
    source, target = _by_rows(sA_input), _by_rows(A_transform)
    if transform_a_source is OperandSource.TMEM:
        stores = tcgen05.make_tmem_copy(copy_atom_a_transform, target[None, None, 0])
        loads = make_tiled_copy_tv(
            copy_atom_a_input, algebra.make_layout((_THREADS, 1)),
            algebra.make_layout((1, int(algebra.size(target.shape, [1])))),
        )  # fmt: skip
    else:
        rows, columns = (int(algebra.size(target.shape, [i])) for i in (0, 1))
        is_k = int(target.layout((0, 1, 0))) == 1
        extent = columns if is_k else rows
        along = min(extent // _VALUES, _THREADS)
        across = _THREADS // along
        threads = algebra.make_layout(
            (across, along) if is_k else (along, across),
            stride=(along, 1) if is_k else (1, along),
        )
        values = algebra.make_layout((1, _VALUES) if is_k else (_VALUES, 1))
        stores = make_tiled_copy_tv(copy_atom_a_transform, threads, values)
        loads = make_tiled_copy_tv(copy_atom_a_input, threads, values)
    mine = loads.get_slice(transform_local_tidx).partition_S(source)
    return loads, stores, mine, stores.get_slice(transform_local_tidx).partition_D(target)


@takes_location
def cvt_tensor_a(
    tensor: Tensor | TensorSSA, mma_dtype: type[Numeric], shuffle: bool = False
) -> TensorSSA:
    """Return the elements of `tensor`, a part of A in registers, as `mma_dtype`.

    Raises NotOfferedError with `shuffle`, for elements of 4 bits that the program has put into
    another order for its conversion: no public description says which.
    """
    if shuffle:
        raise NotOfferedError(
            "shuffled elements of 4 bits are not offered: no public description has their order",
            hint="leave A in its own order, and pass shuffle=False",
        )
    values = tensor.load() if isinstance(tensor, Tensor) else tensor
    if not isinstance(values, TensorSSA):
        raise DSLTypeError(f"cvt_tensor_a converts registers or a vector of them, not {tensor}")
    return values.to(mma_dtype)


@takes_location
def store_transformed_a(tensor: Tensor | TensorSSA, dst: Tensor, dst_copy: TiledCopy) -> None:
    """Store `tensor`, a thread's part of the transformed A, to `dst` by `dst_copy`, both of
    `transform_partition`; the fence that lets the MMA read it is the program's.
    """
    if isinstance(tensor, TensorSSA):
        registers = make_rmem_tensor(tensor.shape, dst.element_type)
        registers.store(tensor)
        tensor = registers
    copy(dst_copy, tensor, dst)
