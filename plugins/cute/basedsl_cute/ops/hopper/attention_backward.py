"""The gradients of attention on Hopper: warp-specialised, by TMA and wgmma.

A block has a tile of keys, and walks over the tiles of queries that see them. A producer warp loads
its keys and values once, and queries and gradients of the result into rings of stages. Two consumer
warpgroups make the transposed weights P^T = exp(K Q^T - lse) again, and
dS^T = P^T (V dO^T - delta), from which they sum dV += P^T dO and dK += dS^T Q in registers. The sum
dQ = dS K needs the keys of both: dS goes through shared memory, each warpgroup multiplies it with
its part of the head, and its threads add the product to a Float32 workspace, where it lies as in
registers. Each has its own 64 keys; heads beyond 128 elements leave registers for 64 keys in all,
whose queries, and whose gradients' columns, the warpgroups share.

A kernel before makes delta, the sum of dO O of each row, and clears the workspace; one behind
converts that. The order in which blocks add is not fixed, so that dQ differs from run to run in its
last bits; `ops.ampere.attention_backward` is the same in every run.
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import cpasync, tma
from basedsl_cute.ops.ampere.attention_backward import store_rows
from basedsl_cute.ops.flash.softmax import as_rows
from basedsl_cute.ops.flash.variant import LOG2_E
from basedsl_cute.ops.hopper.attention import L2_BYTES
from basedsl_cute.ops.hopper.attention_backward_consumer import (
    Consumer,
    consume,
)
from basedsl_cute.ops.hopper.attention_backward_parts import (
    GROUPS,
    THREADS,
    Tasks,
    convert_kernel,
    opaque_zero,
    prepare_kernel,
    producer,
    smem_layouts,
    tiled_mmas,
)
from basedsl_cute.ops.hopper.attention_backward_parts import (
    Config as Config,
)
from basedsl_cute.ops.hopper.attention_rows import tma_tile

# The least blocks of a section of heads: a causal mask gives each block other work, which sections
# of fewer blocks than multiprocessors share unevenly.
_LEAST_BLOCKS = 128


@cute.kernel
def backward_kernel(
    load_k: tma.TmaAtom,
    tma_k: cute.Tensor,
    load_v: tma.TmaAtom,
    tma_v: cute.Tensor,
    load_q: tma.TmaAtom,
    tma_q: cute.Tensor,
    load_g: tma.TmaAtom,
    tma_g: cute.Tensor,
    sums: cute.Tensor,
    stats: cute.Tensor,
    grad_k: cute.Tensor,
    grad_v: cute.Tensor,
    captured: tuple,
    scale: cute.Float32,
    swizzle: cute.Int32,
    mma: cute.Constexpr,
    dtype: cute.Constexpr,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
):
    (m, n), head_k, head_v = cfg.tile, cute.size(tma_k, mode=[1]), cute.size(tma_v, mode=[1])
    thread = arch.thread_idx()[0]
    tasks = Tasks(variant, tma_q.shape, tma_k.shape, captured, swizzle, cfg)
    smem = cute.utils.SmemAllocator()
    layouts = smem_layouts(dtype, head_k, head_v, cfg)
    depths = (1, 1, cfg.stages, cfg.stages)
    barriers = [smem.allocate_array(cute.Int64, 2 * stages) for stages in depths]
    staged = [smem.allocate_tensor(dtype, layout, 1024) for layout in layouts]
    sk, sv, sq, sg, *_ = staged
    sstats = smem.allocate_tensor(cute.Float32, cute.make_layout((m, 2, cfg.stages)), 128)

    warp_number = arch.make_warp_uniform(arch.warp_idx())
    agents = pipeline.Agent.Thread
    beside = (0, 0, 8 * m, 0)  # bytes of stats that come with the queries
    pipes = [
        pipeline.PipelineTmaAsync.create(
            barrier_storage=storage,
            num_stages=stages,
            producer_group=pipeline.CooperativeGroup(agents),
            consumer_group=pipeline.CooperativeGroup(
                agents, (THREADS if by_threads else 4) * GROUPS
            ),
            by_threads=by_threads,
            tx_count=cute.size_in_bytes(dtype, cute.select(layout, [0, 1])) + more,
            defer_sync=True,
        )
        for storage, stages, layout, more, by_threads in zip(
            barriers, depths, layouts, beside, (False, False, cfg.by_threads, False), strict=False
        )
    ]
    pipeline.pipeline_init_arrive()
    pipeline.pipeline_init_wait()

    if warp_number < 4:
        arch.setmaxregister_decrease(24)
        if warp_number == 0:
            block = arch.block_idx()[0] + opaque_zero()
            tile, key_head, batch, _, tiles = tasks.own(block)
            fixed = (
                tma_tile(load_k, tma_k, sk, (n, head_k), (tile, 0), key_head, batch),
                tma_tile(load_v, tma_v, sv, (n, head_v), (tile, 0), key_head, batch),
            )
            sides = ((load_q, tma_q, sq), (load_g, tma_g, sg))
            producer(pipes, (load_k, load_v), fixed, sides, (stats, sstats), tiles, batch, cfg)
    else:
        arch.setmaxregister_increase(240)
        tile, key_head, batch, place, tiles = tasks.own(arch.block_idx()[0])
        key0 = tile * n
        lane, number = thread - THREADS, warp_number // 4 - 1
        own = Consumer(mma, staged, sstats, sums, place, key0, scale, lane, number, cfg)
        consume(own, pipes, tiles, batch)
        own.acc_k.store(own.acc_k.load() * scale)
        if cute.const_expr(variant.mask is not None):
            # Found again, since a mask leaves few registers in the walk.
            tile, key_head, batch, *_ = tasks.own(arch.block_idx()[0] + opaque_zero())
            key0 = tile * n
        for acc, product, result, width in (
            (own.acc_k, own.mma_k, grad_k, head_k),
            (own.acc_v, own.mma_v, grad_v, head_v),
        ):
            coords = product.get_slice(lane).partition_C(cute.make_identity_tensor((n, width)))
            store_rows(
                acc,
                as_rows(coords),
                lambda row, x=result: x[key0 + row, None, key_head, batch],
                lambda row: key0 + row < tma_k.shape[0],
                dtype,
            )


@cute.jit
def backward(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    grad: cute.Tensor,
    lse: cute.Tensor,
    stats: cute.Tensor,
    sums: cute.Tensor,
    grad_q: cute.Tensor,
    grad_k: cute.Tensor,
    grad_v: cute.Tensor,
    captured: tuple,
    scale: cute.Float32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Constexpr = None,
):
    """Compute the gradients of attention from that of its result.

    `q`, `out`, `grad` and `grad_q` are (queries, head, heads, batches), `k`, `v` and their
    gradients (keys, head, key heads, batches), `lse` (queries, heads, batches). Written are
    `stats` (rows of a tile, 2, tiles, heads, batches) and `sums` (floats of a tile, tiles, heads,
    batches), both Float32. Scores may be masked, not changed. Raises DSLTypeError for a tile or
    heads without a kernel.
    """
    (m, n), head_k, head_v, dtype = cfg.tile, q.shape[1], v.shape[1], q.element_type
    if cute.const_expr(cfg.is_shared):
        suits = all(head in (128, 256) for head in (head_k, head_v))
    else:
        suits = head_k in (64, 128) and head_v <= 128
    if cute.const_expr(m == 128):
        suits = head_k == 64 and head_v == 64 and n == 128
    if cute.const_expr(m not in (64, 128) or n not in (64, 128) or not suits):
        raise DSLTypeError(
            f"attention's gradients on Hopper have no tile {cfg.tile} for heads of "
            f"{head_k} and {head_v} elements",
            hint="(64, 128) has a kernel for heads of 64 and 128, (128, 128) for 64, (64, 64) for "
            "128 and 256",
        )
    if cute.const_expr(variant.is_scored):
        raise DSLTypeError("attention's gradients on Hopper take no changed scores")
    layouts = smem_layouts(dtype, head_k, head_v, cfg)
    mma = tiled_mmas(dtype, head_k, head_v, cfg)
    op = cpasync.CopyBulkTensorTileG2SOp()
    tiles = ((n, head_k), (n, head_v), (m, head_k), (m, head_v))
    loads: list = []
    for x, layout, tile in zip((k, v, q, grad), layouts, tiles, strict=False):
        loads += cpasync.make_tiled_tma_atom(op, x, cute.select(layout, [0, 1]), tile)
    query_tiles = cute.ceil_div(q.shape[0], m)
    # The first tiles of queries, whose rows may see few keys, take the most time, so they go first.
    prepare_kernel(
        out, grad, lse, stats, sums, (q, k, v), captured, scale * LOG2_E, variant, m
    ).launch(
        grid=(q.shape[2], q.shape[3], query_tiles),
        block=(THREADS, 1, 1),
        stream=stream,
    )
    heads, swizzle = cute.Int32(k.shape[2] * k.shape[3]), cute.Int32(1)
    if cute.const_expr(variant.right is not None or variant.mask is not None):
        group = q.shape[2] // k.shape[2]
        held = cute.Int64(q.shape[0]) * (2 * (head_k + head_v)) * group
        fitting = cute.Int32(cute.max(cute.Int64(L2_BYTES) // cute.max(held, 1), 1))
        least = cute.ceil_div(_LEAST_BLOCKS, cute.max(cute.ceil_div(k.shape[0], n), 1))
        swizzle = cute.min(cute.max(fitting, cute.Int32(least)), heads)
    tiles = cute.Int32(cute.ceil_div(k.shape[0], n))
    static = (mma, dtype, variant, cfg)
    backward_kernel(*loads, sums, stats, grad_k, grad_v, captured, scale, swizzle, *static).launch(
        grid=(tiles * heads, 1, 1),
        block=(cfg.threads, 1, 1),
        stream=stream,
        min_blocks_per_mp=1,
    )
    convert_kernel(sums, grad_q, scale, mma[3], cfg).launch(
        grid=(query_tiles, *q.shape[2:]), block=(THREADS * GROUPS, 1, 1), stream=stream
    )
