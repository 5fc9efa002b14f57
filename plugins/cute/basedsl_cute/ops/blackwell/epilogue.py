"""The warps of the Blackwell GEMM that store: accumulators through the epilogue to C."""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma
from basedsl_cute.ops.blackwell.quantize import quantized
from basedsl_cute.ops.blackwell.roles import EPILOGUE_BARRIER, EPILOGUE_WARPS, next_work
from basedsl_cute.ops.blackwell.shapes import Shapes
from basedsl_cute.utils import epilogue
from basedsl_cute.utils.gemm.sm100 import (
    epilogue_smem_copy_and_partition,
    epilogue_tmem_copy_and_partition,
    transform_partitioned_tensor_layout,
)

__all__ = ["epilogue_warps"]


@cute.jit
def epilogue_warps(
    acc, sums, sc, gc, store_c, extras, factors, part, shapes: cute.Constexpr, schedule, state,
    work, cfg: cute.Constexpr, epilogue_op: cute.Constexpr, form: cute.Constexpr,
):  # fmt: skip
    """Store each tile: tensor memory to registers, the epilogue, shared memory, TMA. With a `form`
    the results are quantised to it, and `factors` is the tuple of the tensor of their factors.
    """
    thread = arch.thread_idx()[0]
    warp = arch.make_warp_uniform(arch.warp_idx())
    everyone = pipeline.NamedBarrier(EPILOGUE_BARRIER, 32 * len(EPILOGUE_WARPS))
    whole_acc = transform_partitioned_tensor_layout(acc)
    whole_c = transform_partitioned_tensor_layout(gc)
    t2r, mine, values = epilogue_tmem_copy_and_partition(
        shapes, thread, whole_acc, whole_c, shapes.epi_tile, cfg.pair
    )
    out = cute.make_rmem_tensor(values.shape, shapes.c_dtype)
    r2s, registers, to_smem = epilogue_smem_copy_and_partition(shapes, t2r, out, thread, sc)
    of_c = cute.flat_divide(whole_c, shapes.epi_tile)
    staged, in_c = tma.tma_partition(
        store_c, 0, cute.make_layout(1), cute.group_modes(sc, 0, 2), cute.group_modes(of_c, 0, 2)
    )
    operands = divided_operands(extras, part, t2r, thread, shapes)
    stores = pipeline.PipelineTmaStore.create(num_stages=cfg.c_stages)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.acc_stages)
    number = cute.Int32(0)  # of the piece, over all tiles
    while work.is_valid_tile:
        m, n, batch = work.tile_idx
        tile = (m // cfg.blocks, n, batch)
        pieces = cute.group_modes(mine[None, None, None, None, None, read.index], 3, 5)
        targets = cute.group_modes(in_c[None, None, None, *tile], 1, 3)
        given = [cute.group_modes(x[None, None, None, None, None, *tile], 3, 5)
                 if isinstance(x, cute.Tensor) else x for x in operands]  # fmt: skip
        sums.consumer_wait(read)
        for i in cute.range(cute.size(pieces, mode=[3]), unroll=1):
            cute.copy(t2r, pieces[None, None, None, i], values)
            more = load_pieces(extras, given, i)
            if cute.const_expr(form is None):
                results = epilogue.apply_epilogue(epilogue_op, values.load(), more, shapes.c_dtype)
            else:
                exact = epilogue.apply_epilogue(epilogue_op, values.load(), more, cute.Float32)
                at = given[0][None, None, None, i]
                results = quantized(exact, at, factors[0], extras[0], form)
            out.store(results.reshape(out.shape))
            slot = number % cfg.c_stages
            if warp == EPILOGUE_WARPS[0]:
                stores.producer_acquire()
            everyone.arrive_and_wait()  # the slot is free
            cute.copy(r2s, registers, to_smem[None, None, None, slot])
            arch.fence_view_async_shared()
            everyone.arrive_and_wait()  # the piece is in shared memory
            if warp == EPILOGUE_WARPS[0]:
                cute.copy(store_c, staged[None, slot], targets[None, i])
                stores.producer_commit()
            number += 1
        with arch.elect_one():
            sums.consumer_release(read)
        read.advance()
        work = next_work(schedule, state)
    if warp == EPILOGUE_WARPS[0]:
        stores.producer_tail()


def divided_operands(extras: Any, part: Any, t2r: Any, thread: Any, shapes: Shapes) -> list[Any]:
    """This thread's part of the coordinates of C and of each epilogue operand, by pieces; numbers
    stay.
    """
    if not extras:
        return []
    shape, operands = extras
    mine = t2r.get_slice(thread)

    def cut(x: Any) -> Any:
        tiles = part.partition_C(cute.local_tile(x, shapes.tiler[:2], (None,) * 3))
        whole = transform_partitioned_tensor_layout(tiles)
        return mine.partition_D(cute.flat_divide(whole, shapes.epi_tile))

    found = [cut(cute.make_identity_tensor(shape))]
    return found + [cut(x) if isinstance(x, cute.Tensor) else x for x in operands]


def load_pieces(extras: Any, given: Any, i: Any) -> list[Any]:
    """Load a thread's part of each epilogue operand for the piece `i`, zero outside of C."""
    if not extras:
        return []
    shape, operands = extras
    coords, *parts = given
    here = coords[None, None, None, i]
    loaded: list[Any] = []
    for x, whole in zip(parts, operands, strict=True):
        if isinstance(x, cute.Tensor):
            is_safe = True if epilogue.is_one_number(whole) else None
            values = epilogue.load_operand(x[None, None, None, i], here, shape, is_safe)
            x = values
        loaded.append(x)
    return loaded
