"""`utils.gemm.sm100`: epilogues of GEMM kernels with accumulators in tensor memory (sm_100f).

They are for the threads of four warps, whose `tidx` is 0 to 127, and take the kernel as
`kernel_obj`, an object with the attributes `cta_tile_shape_mnk`, `c_layout` (a `LayoutEnum`),
`c_dtype`, `acc_dtype`, `use_2cta_instrs`, `epilogue_warp_id` (the numbers of the warps),
`epilog_sync_bar_id` (a named barrier of these) and `num_c_stage`.

Accumulators are what `make_fragment_C` gives, ((M, N), MMA_M, MMA_N, stage), and C what
`partition_C` gives, ((M, N), MMA_M, MMA_N, tiles M, tiles N, batches). The barrier of accumulators
is a `PipelineUmmaAsync`, which one thread of each warp releases.
"""

from __future__ import annotations

from typing import Any

from basedsl import Constexpr, DSLTypeError, const_expr
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import make_tiled_copy_D
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.atoms.copy_tensors import autovec_copy, copy
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.nvgpu.tma import tma_partition
from basedsl_cute.pipeline import NamedBarrier
from basedsl_cute.tensors.make_tensor import make_rmem_tensor
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.utils import blackwell_helpers
from basedsl_cute.utils.epilogue import apply_epilogue

__all__ = [
    "epilogue",
    "epilogue_smem_copy_and_partition",
    "epilogue_tma_store",
    "epilogue_tmem_copy_and_partition",
    "transform_partitioned_tensor_layout",
]


@takes_location
def transform_partitioned_tensor_layout(tensor: Tensor) -> Tensor:
    """Return a view of `tensor`, ((M, N), MMA_M, MMA_N, rest...), as ((M, MMA_M), (N, MMA_N),
    rest...).
    """
    layout = tensor.layout
    (m, n), mma_m, mma_n, *rest = layout.shape
    (dm, dn), d_mma_m, d_mma_n, *steps = layout.stride
    shape = ((m, mma_m), (n, mma_n), *rest)
    stride = ((dm, d_mma_m), (dn, d_mma_n), *steps)
    return Tensor(tensor.iterator, algebra.Layout(shape, stride))


@takes_location
def epilogue_tmem_copy_and_partition(
    kernel_obj: Any, tidx: Any, tCtAcc: Tensor, tCgC: Tensor, epi_tile: Any, use_2cta_instrs: bool
) -> tuple[Any, Tensor, Tensor]:
    """Return the tiled copy of an epilogue tile from tensor memory, this thread's part of all
    tiles (T2R, T2R_M, T2R_N, EPI_M, EPI_N, rest...), and registers for one of them.

    `tCtAcc` and `tCgC`, the accumulators and C, are results of
    `transform_partitioned_tensor_layout`; `epi_tile` is the tile (M, N) of
    `compute_epilogue_tile_shape`. `kernel_obj` has the attributes that the module names, `tidx` is
    this thread's number, 0 to 127, and `use_2cta_instrs` is True for MMAs by pairs of blocks.
    """
    atom = blackwell_helpers.get_tmem_load_op(
        kernel_obj.cta_tile_shape_mnk,
        kernel_obj.c_layout,
        kernel_obj.c_dtype,
        kernel_obj.acc_dtype,
        epi_tile,
        use_2cta_instrs,
    )
    tiles = algebra.flat_divide(tCtAcc, epi_tile)
    rest = (0,) * (algebra.rank(tiles.layout) - 2)
    t2r = tcgen05.make_tmem_copy(atom, tiles[(None, None, *rest)])
    mine = t2r.get_slice(tidx)
    of_c = algebra.flat_divide(tCgC, epi_tile)
    rest = (0,) * (algebra.rank(of_c.layout) - 2)
    shape = mine.partition_D(of_c[(None, None, *rest)]).shape
    return t2r, mine.partition_S(tiles), make_rmem_tensor(shape, kernel_obj.acc_dtype)


@takes_location
def epilogue_smem_copy_and_partition(
    kernel_obj: Any, tiled_copy_t2r: Any, tTR_rC: Tensor, tidx: Any, sC: Tensor
) -> tuple[Any, Tensor, Tensor]:
    """Return the tiled copy of registers to shared memory, the registers `tTR_rC` as it takes them,
    and this thread's part of `sC` (R2S, R2S_M, R2S_N, stage).

    `tiled_copy_t2r` is the copy of `epilogue_tmem_copy_and_partition`, `kernel_obj` has the
    attributes that the module names, and `tidx` is this thread's number, 0 to 127.
    """
    atom = blackwell_helpers.get_smem_store_op(
        kernel_obj.c_layout, kernel_obj.c_dtype, kernel_obj.acc_dtype, tiled_copy_t2r
    )
    r2s = make_tiled_copy_D(atom, tiled_copy_t2r)
    return r2s, r2s.retile(tTR_rC), r2s.get_slice(tidx).partition_D(sC)


def _load_accumulators(
    kernel_obj: Any, t2r: Any, tile: Any, sums: Tensor, out: Tensor, op: Any
) -> None:
    """Load a tile of accumulators and put them through the epilogue."""
    copy(t2r, tile, sums)
    values = sums.load().to(kernel_obj.c_dtype)
    out.store(apply_epilogue(op, values, (), kernel_obj.c_dtype))


@CUTE.jit
def epilogue_tma_store(
    kernel_obj: Constexpr,
    tidx: Any,
    warp_idx: Any,
    tma_atom_c: Any,
    tCtAcc_base: Any,
    sC: Any,
    tCgC: Any,
    epi_tile: Constexpr,
    num_tiles_executed: Any,
    epilogue_op: Constexpr,
    mma_tile_coord_mnl: Any,
    acc_consumer_state: Any,
    acc_pipeline: Any,
    c_pipeline: Any,
) -> Any:
    """Store one tile of C by TMA through the stages of `sC`, and release its accumulators.

    `kernel_obj` has the attributes that the module names; `tidx` is this thread's number, 0 to 127,
    and `warp_idx` its warp's in the block. `tCtAcc_base` has all stages of accumulators, `sC`
    (EPI_M, EPI_N, stage) is of `make_smem_layout_epi`, `tCgC` the partition of the coordinate
    tensor that `tma_atom_c` was made with. `epi_tile` is the tile of `compute_epilogue_tile_shape`,
    and `mma_tile_coord_mnl` the coordinates of the tile of C, in tiles of the MMA and batches.

    `num_tiles_executed` tells stages of `sC` from tile to tile; `epilogue_op` is a function of a
    vector of C's elements, which returns one (DSLTypeError otherwise). `acc_pipeline` is the
    `PipelineUmmaAsync` of the accumulators, `acc_consumer_state` their state, which is returned
    advanced; `c_pipeline` is the `PipelineTmaStore` of the stages of `sC`.
    """
    accumulators = transform_partitioned_tensor_layout(tCtAcc_base)
    whole_c = transform_partitioned_tensor_layout(tCgC)
    t2r, mine, sums = epilogue_tmem_copy_and_partition(
        kernel_obj, tidx, accumulators, whole_c, epi_tile, kernel_obj.use_2cta_instrs
    )
    out = make_rmem_tensor(sums.shape, kernel_obj.c_dtype)
    r2s, from_registers, to_smem = epilogue_smem_copy_and_partition(kernel_obj, t2r, out, tidx, sC)
    m, n, batch = mma_tile_coord_mnl
    of_c = algebra.flat_divide(whole_c[None, None, m, n, batch], epi_tile)
    staged, in_global = tma_partition(
        tma_atom_c, 0, algebra.make_layout(1), algebra.group_modes(sC, 0, 2),
        algebra.group_modes(of_c, 0, 2),
    )  # fmt: skip
    in_global = algebra.group_modes(in_global, 1, 3)
    mine = mine[None, None, None, None, None, acc_consumer_state.index]
    mine = algebra.group_modes(mine, 3, 5)
    stages = kernel_obj.num_c_stage
    count = algebra.size(mine.layout.shape, [3])
    threads = arch.WARP_SIZE * len(kernel_obj.epilogue_warp_id)
    everyone = NamedBarrier(kernel_obj.epilog_sync_bar_id, threads)
    acc_pipeline.consumer_wait(acc_consumer_state)
    first = num_tiles_executed * count
    for i in range(count):
        _load_accumulators(kernel_obj, t2r, mine[None, None, None, i], sums, out, epilogue_op)
        buffer = (first + i) % stages
        copy(r2s, from_registers, to_smem[None, None, None, buffer])
        arch.fence_view_async_shared()
        everyone.arrive_and_wait()
        if warp_idx == kernel_obj.epilogue_warp_id[0]:
            copy(tma_atom_c, staged[None, buffer], in_global[None, i])
            c_pipeline.producer_commit()
            c_pipeline.producer_acquire()
        everyone.arrive_and_wait()
    everyone.arrive_and_wait()
    with arch.elect_one():
        acc_pipeline.consumer_release(acc_consumer_state)
    acc_consumer_state.advance()
    return acc_consumer_state


@CUTE.jit
def epilogue(
    kernel_obj: Constexpr,
    tidx: Any,
    tCtAcc_base: Any,
    tCgC: Any,
    epi_tile: Constexpr,
    epilogue_op: Constexpr,
    mma_tile_coord_mnl: Any,
    acc_consumer_state: Any,
    acc_pipeline: Any,
    tCcC_base: Any = None,
    mC_mnl: Any = None,
    overlapping_accum: Constexpr = False,
) -> Any:
    """Store one tile of C from registers, and release its accumulators.

    `tCgC` is the partition of C itself. With `tCcC_base`, the same partition of the identity tensor
    of C, and `mC_mnl`, C, elements outside of C are not stored. `kernel_obj`, `tidx`,
    `tCtAcc_base`, `epi_tile`, `epilogue_op`, `mma_tile_coord_mnl`, `acc_pipeline` and
    `acc_consumer_state` are those of `epilogue_tma_store`. Returns the advanced state of the
    accumulators.

    With `overlapping_accum` the barrier has one stage and `tCtAcc_base` two, of which the last
    columns of the first are the first ones of the second. The phase of the state says which one is
    stored: those columns come first, and then the accumulators are released. Raises DSLTypeError
    for accumulators that do not overlap so.
    """
    accumulators = transform_partitioned_tensor_layout(tCtAcc_base)
    whole_c = transform_partitioned_tensor_layout(tCgC)
    t2r, mine, sums = epilogue_tmem_copy_and_partition(
        kernel_obj, tidx, accumulators, whole_c, epi_tile, kernel_obj.use_2cta_instrs
    )
    out = make_rmem_tensor(sums.shape, kernel_obj.c_dtype)
    m, n, batch = mma_tile_coord_mnl
    mine_of_c = t2r.get_slice(tidx).partition_D(
        algebra.flat_divide(whole_c[None, None, m, n, batch], epi_tile)
    )
    mine_of_c = algebra.group_modes(mine_of_c, 3, 5)
    stage = acc_consumer_state.index
    if const_expr(overlapping_accum):
        stage = acc_consumer_state.phase
    mine = mine[None, None, None, None, None, stage]
    mine = algebra.group_modes(mine, 3, 5)
    count = int(algebra.size(mine.layout.shape, [3]))
    shared = _shared_tiles(accumulators, count) if const_expr(overlapping_accum) else count
    places: Any = None
    if const_expr(tCcC_base is not None):
        places = t2r.get_slice(tidx).partition_D(
            algebra.flat_divide(
                transform_partitioned_tensor_layout(tCcC_base)[None, None, m, n, batch], epi_tile
            )
        )
        places = algebra.group_modes(places, 3, 5)
    acc_pipeline.consumer_wait(acc_consumer_state)
    for turn in range(count):
        i = turn
        if const_expr(overlapping_accum):  # from the end of the first stage
            i = turn + (1 - stage) * (count - 1 - 2 * turn)
        _load_accumulators(kernel_obj, t2r, mine[None, None, None, i], sums, out, epilogue_op)
        if turn == shared - 1:
            with arch.elect_one():
                acc_pipeline.consumer_release(acc_consumer_state)
        target = mine_of_c[None, None, None, i]
        if const_expr(places is None):
            autovec_copy(out, target)
        else:
            _store_inside(out, target, places[None, None, None, i], mC_mnl.shape)
    acc_consumer_state.advance()
    return acc_consumer_state


def _shared_tiles(accumulators: Tensor, count: int) -> int:
    """Return how many of the `count` tiles of a stage have columns of the other stage too."""
    layout = accumulators.layout
    stages, step = algebra.get(layout, 2).shape, algebra.get(layout, 2).stride
    columns = tcgen05.find_tmem_tensor_col_offset(accumulators[None, None, 0])
    if stages != 2 or not columns // 2 <= step <= columns:
        raise DSLTypeError(
            "overlapping accumulators are two, the second beginning within the first",
            notes=((f"they are {accumulators}", None),),
            hint="cute.make_layout(shape, stride=(*stride[:3], columns that are not shared))",
        )
    return max(1, -(-(columns - int(step)) * count // columns))


def _store_inside(out: Tensor, target: Tensor, places: Tensor, bound: Any) -> None:
    """Store the elements whose coordinates are below `bound`."""
    for j in range(int(algebra.size(out.shape))):
        with predicated(algebra.elem_less(places[j], bound)):
            target[j] = out[j]
