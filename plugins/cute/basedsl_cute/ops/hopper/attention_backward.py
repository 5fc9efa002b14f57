"""The gradients of attention on Hopper: warp-specialised, by TMA and wgmma.

A block has a tile of keys, 64 for each consumer warpgroup, and walks over the tiles of queries that
see them. A producer warp loads its keys and values once, and queries and gradients of the result
into rings of stages. A consumer makes the transposed weights P^T = exp(K Q^T - lse) again, and
dS^T = P^T (V dO^T - delta), from which it sums dV += P^T dO and dK += dS^T Q in registers. The sum
dQ = dS K needs the keys of all warpgroups: dS goes through shared memory, each warpgroup multiplies
it with its part of the head, and its threads add the product to a Float32 workspace, where it lies
as in registers.

A kernel before makes delta, the sum of dO O of each row, and clears the workspace; one behind
converts that. The order in which blocks add is not fixed, so that dQ differs from run to run in its
last bits; `ops.ampere.attention_backward` is the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.nvgpu import OperandMajorMode, cpasync, tma, warp, warpgroup
from basedsl_cute.ops.ampere.attention_backward import store_rows
from basedsl_cute.ops.flash.softmax import as_rows, as_wgmma_operand
from basedsl_cute.ops.flash.variant import LOG2_E, Place, Sequence
from basedsl_cute.ops.hopper.attention import COLUMN, L2_BYTES, ROW, ROWS, tma_tile
from basedsl_cute.utils import hopper_helpers as sm90

THREADS = 128  # of a warpgroup, and of the kernels before and behind
VECTOR = 4  # floats of a thread that lie together in the workspace


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel.

    `tile` is (queries, keys): 64 keys for each of two consumer warpgroups. `stages` is the number
    of tiles of queries, and of gradients, in shared memory.
    """

    tile: tuple[int, int] = (64, 128)
    stages: int = 2

    @property
    def groups(self) -> int:
        """The number of consumer warpgroups."""
        return self.tile[1] // ROWS

    @property
    def threads(self) -> int:
        return THREADS * (self.groups + 1)

    def workspace(self, head: int) -> int:
        """The floats of a tile of dQ."""
        return self.tile[0] * head


@cute.kernel
def prepare_kernel(
    out: cute.Tensor,
    grad: cute.Tensor,
    lse: cute.Tensor,
    stats: cute.Tensor,
    sums: cute.Tensor,
    rows: cute.Constexpr,
):
    """Write `stats` (rows, 2, tiles, heads, batches) of each tile of queries: the logarithms of
    their sums for exponents of two, and delta; clear `sums` (floats, tiles, heads, batches). A row
    that sees nothing, or is none, has the logarithm infinity, which makes weights 0.
    """
    thread = arch.thread_idx()[0]
    tile, head, batch = arch.block_idx()
    lane, warps = thread % arch.WARP_SIZE, THREADS // arch.WARP_SIZE
    zeros = cute.make_rmem_tensor((VECTOR,), cute.Float32)
    zeros.fill(0.0)
    own = sums[None, tile, head, batch]
    for i in cute.range(thread, sums.shape[0] // VECTOR, THREADS, unroll=1):
        cute.autovec_copy(zeros, cute.local_tile(own, (VECTOR,), (i,)))
    for i in cute.range(thread // arch.WARP_SIZE, rows, warps, unroll=4):
        row = tile * rows + i
        inside = row < out.shape[0]
        at = cute.where(inside, row, 0)
        total = cute.Float32(0.0)
        width = 8
        results, grads = out[at, None, head, batch], grad[at, None, head, batch]
        for piece in cute.range(lane, out.shape[1] // width, arch.WARP_SIZE, unroll=1):
            total = total + inner_product(
                cute.local_tile(results, (width,), (piece,)),
                cute.local_tile(grads, (width,), (piece,)),
            )
        total = arch.warp_reduction_sum(total)
        if lane == 0:
            log = lse[at, head, batch]
            sees = inside and log != -cute.Float32.inf
            stats[i, 0, tile, head, batch] = cute.where(sees, log * LOG2_E, cute.Float32.inf)
            stats[i, 1, tile, head, batch] = cute.where(sees, total, 0.0)


def inner_product(x, y):
    """The sum of the products of two vectors in global memory."""
    loaded: list = []
    for vector in (x, y):
        own = cute.make_rmem_tensor((cute.size(vector),), vector.element_type)
        cute.autovec_copy(vector, own)
        loaded.append(own.load().to(cute.Float32))
    return (loaded[0] * loaded[1]).reduce(cute.ReductionOp.ADD, cute.Float32(0.0), 0)


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
    mma_s, mma_k, mma_v, mma_q = mma
    thread = arch.thread_idx()[0]
    tile, key_head, batch = task_of(tma_k.shape, n, swizzle)
    sequence = Sequence(cute.Int32(tma_q.shape[0]), cute.Int32(tma_k.shape[0]))
    place = Place(variant, sequence, batch, None, None, captured)
    group = tma_q.shape[2] // tma_k.shape[2]
    smem = cute.utils.SmemAllocator()
    layouts = smem_layouts(dtype, head_k, head_v, cfg)
    depths = (1, 1, cfg.stages, cfg.stages)
    barriers = [smem.allocate_array(cute.Int64, 2 * stages) for stages in depths]
    sk, sv, sq, sg, sds = (smem.allocate_tensor(dtype, layout, 1024) for layout in layouts)
    sstats = smem.allocate_tensor(cute.Float32, cute.make_layout((m, 2, cfg.stages)), 128)

    warp_number = arch.make_warp_uniform(arch.warp_idx())
    agents = pipeline.Agent.Thread
    beside = (0, 0, 8 * m, 0)  # bytes of stats that come with the queries
    pipes = [
        pipeline.PipelineTmaAsync.create(
            barrier_storage=storage,
            num_stages=stages,
            producer_group=pipeline.CooperativeGroup(agents),
            consumer_group=pipeline.CooperativeGroup(agents, 4 * cfg.groups),
            tx_count=cute.size_in_bytes(dtype, cute.select(layout, [0, 1])) + more,
            defer_sync=True,
        )
        for storage, stages, layout, more in zip(barriers, depths, layouts, beside, strict=False)
    ]
    pipeline.pipeline_init_arrive()
    pipeline.pipeline_init_wait()

    key0 = tile * n
    begin, end = place.queries_of(key0, cute.min(key0 + n, sequence.keys) - 1)
    low, high = begin // m, cute.ceil_div(end, m)
    keys = (key0, key0 + n - 1)
    if warp_number < 4:
        arch.setmaxregister_decrease(24)
        if warp_number == 0:
            fixed = (
                tma_tile(load_k, tma_k, sk, (n, head_k), (tile, 0), key_head, batch),
                tma_tile(load_v, tma_v, sv, (n, head_v), (tile, 0), key_head, batch),
            )
            sides = ((load_q, tma_q, sq), (load_g, tma_g, sg))
            walk = (low, high, key_head * group, group, batch, keys)
            producer(pipes, (load_k, load_v), fixed, sides, (stats, sstats), walk, place, cfg)
    else:
        arch.setmaxregister_increase(240)
        lane = thread - THREADS
        own_s, own_k, own_v = (x.get_slice(lane) for x in (mma_s, mma_k, mma_v))
        own_q = mma_q.get_slice(lane)
        rq, rg = (mma_s.make_fragment_B(own_s.partition_B(x)) for x in (sq, sg))
        queries_t = mma_k.make_fragment_B(own_k.partition_B(cute.select(sq, [1, 0, 2])))
        grads_t = mma_v.make_fragment_B(own_v.partition_B(cute.select(sg, [1, 0, 2])))
        changes = mma_q.make_fragment_A(own_q.partition_A(sds))
        acc_k = cute.make_rmem_tensor(mma_k.partition_shape_C((n, head_k)), cute.Float32)
        acc_v = cute.make_rmem_tensor(mma_v.partition_shape_C((n, head_v)), cute.Float32)
        acc_k.fill(0.0)
        acc_v.fill(0.0)
        scores = cute.make_rmem_tensor(mma_s.partition_shape_C((n, m)), cute.Float32)
        products = cute.make_rmem_tensor(scores.layout, cute.Float32)
        acc_q = cute.make_rmem_tensor(mma_q.partition_shape_C((m, head_k)), cute.Float32)
        weights = cute.make_rmem_tensor(scores.layout, dtype)
        change = cute.make_rmem_tensor(scores.layout, dtype)
        coords = as_rows(own_s.partition_C(cute.make_identity_tensor((n, m))))
        to_smem = cute.make_tiled_copy_C(
            cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype), mma_s
        )
        target = to_smem.get_slice(lane).partition_D(cute.select(sds, [1, 0, 2]))
        both = pipeline.NamedBarrier(1, THREADS * cfg.groups)
        number = warp_number // 4 - 1
        factor = scale * LOG2_E
        parity = cute.Int32(0)  # of dS
        at_k, at_v, at_q, at_g = [pipe.make_participants()[1] for pipe in pipes]
        at_k.wait_and_advance()
        at_v.wait_and_advance()
        for member in cute.range(group, unroll=1):
            head = key_head * group + member
            for i in cute.range(low, high, unroll=1):
                query0 = i * m
                queries = (query0, query0 + m - 1)
                if not place.truth((head, head), queries, keys).true:
                    continue
                q_stage = at_q.wait_and_advance()
                # The warpgroup's first thread, known in this step only: ptxas would keep the
                # descriptors of keys and values through the loop, in registers that are not there.
                zero = arch.inline_ptx("mov.b32 $0, $1;", [cute.Int32(0)], cute.Int32)
                first = number * THREADS + zero
                of_s, of_q = mma_s.get_slice(first), mma_q.get_slice(first)
                rk, rv = (mma_s.make_fragment_A(of_s.partition_A(x)) for x in (sk, sv))
                keys_t = mma_q.make_fragment_B(of_q.partition_B(cute.select(sk, [1, 0, 2])))
                multiply(mma_s, scores, rk, rq, 0, q_stage.index, False)
                g_stage = at_g.wait()
                multiply(mma_s, products, rv, rg, 0, g_stage.index, False)
                warpgroup.wait_group(1)
                by_row = as_rows(scores)
                logs = stats_of(sstats[None, 0, q_stage.index], coords)
                hide(by_row, coords, place, head, queries, key0, n)
                for r in cute.range_constexpr(cute.size(by_row, mode=[0])):
                    exponents = by_row[r, None].load() * factor - logs.load()
                    by_row[r, None].store(cute.math.exp2(exponents, fastmath=True))
                weights.store(scores.load().to(dtype))
                # Again, for its branch: ptxas moves exponentials behind waits of one basic block.
                at_g.wait_and_advance()
                warpgroup.wait_group(0)
                deltas = stats_of(sstats[None, 1, q_stage.index], coords)
                by_change = as_rows(products)
                for r in cute.range_constexpr(cute.size(by_row, mode=[0])):
                    part = by_change[r, None].load() - deltas.load()
                    by_change[r, None].store(part * by_row[r, None].load())
                change.store(products.load().to(dtype))
                multiply(
                    mma_v, acc_v, as_wgmma_operand(weights), grads_t, None, g_stage.index, True
                )
                cute.copy(to_smem, to_smem.retile(change), target[None, None, None, parity])
                arch.fence_view_async_shared()
                both.arrive_and_wait()  # dS is in shared memory, and that before has been read
                multiply(mma_q, acc_q, changes, keys_t, parity, 0, False)
                parity = 1 - parity
                multiply(
                    mma_k, acc_k, as_wgmma_operand(change), queries_t, None, q_stage.index, True
                )
                warpgroup.wait_group(1)
                g_stage.release()
                part = contiguous(sums[None, i, head, batch])
                each = cfg.workspace(head_k) // cfg.groups
                own = cute.make_tensor(part.iterator + number * each, cute.make_layout(each))
                add_sums(acc_q, own, lane % THREADS)
                warpgroup.wait_group(0)
                q_stage.release()
        acc_k.store(acc_k.load() * scale)
        for acc, own, result, width in (
            (acc_k, own_k, grad_k, head_k),
            (acc_v, own_v, grad_v, head_v),
        ):
            store_rows(
                acc,
                as_rows(own.partition_C(cute.make_identity_tensor((n, width)))),
                lambda row, x=result: x[key0 + row, None, key_head, batch],
                lambda row: key0 + row < sequence.keys,
                dtype,
            )


def task_of(shape, keys, swizzle):
    """The block's tile of keys, head and batch: a tile of `swizzle` heads in a row, of which the
    queries are in the L2 cache together, and then the next tile. With a causal mask the first have
    most queries.
    """
    rows, _, heads, batches = shape
    tiles = cute.ceil_div(cute.Int32(rows), keys)
    number = arch.block_idx()[0]
    section = number // (swizzle * tiles)
    at = number - section * (swizzle * tiles)
    width = cute.min(swizzle, heads * batches - section * swizzle)
    head = section * swizzle + at % width
    return at // width, head % heads, head // heads


@cute.jit
def producer(pipes, atoms, fixed, sides, stats, walk, place, cfg: cute.Constexpr):
    """Load the keys and values, and the queries and gradients of each tile that sees them."""
    low, high, first, group, batch, keys = walk
    (all_stats, sstats), m = stats, cfg.tile[0]
    at_k, at_v, at_q, at_g = [pipe.make_participants()[0] for pipe in pipes]
    for at, atom, (to, source) in zip((at_k, at_v), atoms, fixed, strict=True):
        stage = at.acquire_and_advance()
        cute.copy(atom, source, to[None, stage.index], tma_bar_ptr=stage.barrier)
    bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32)
    for member in cute.range(group, unroll=1):
        head = first + member
        for i in cute.range(low, high, unroll=1):
            if not place.truth((head, head), (i * m, i * m + m - 1), keys).true:
                continue
            for at, (atom, x, staged) in zip((at_q, at_g), sides, strict=True):
                shape = (m, cute.size(x, mode=[1]))
                to, source = tma_tile(atom, x, staged, shape, (i, 0), head, batch)
                stage = at.acquire_and_advance()
                cute.copy(atom, source, to[None, stage.index], tma_bar_ptr=stage.barrier)
                if cute.const_expr(at is at_q):
                    with arch.elect_one():
                        cute.copy(
                            bulk,
                            contiguous(all_stats[None, None, i, head, batch]),
                            contiguous(sstats[None, None, stage.index]),
                            mbar_ptr=stage.barrier,
                        )
    at_q.tail()
    at_g.tail()


def contiguous(x):
    """The tensor as a vector, aligned to 16 bytes."""
    return cute.make_tensor(x.iterator.align(16), cute.make_layout(cute.size(x)))


@cute.jit
def multiply(mma, acc, a, b, stage_a, stage_b, more: cute.Constexpr):
    """Start acc = A B^T of stages, or acc += A B^T with `more`; A without a stage is registers."""
    mma.set(warpgroup.Field.ACCUMULATE, more)
    warpgroup.fence()
    for k in cute.range_constexpr(cute.size(b, mode=[2])):
        part = a[None, None, k] if stage_a is None else a[None, None, k, stage_a]
        cute.gemm(mma, acc, part, b[None, None, k, stage_b], acc)
        mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()


def stats_of(stats, coords):
    """The numbers of a thread's columns, which are pairs of queries."""
    count = cute.size(coords, mode=[1])
    found = cute.make_rmem_tensor((count,), cute.Float32)
    for c in range(count // 2):
        pair = cute.local_tile(stats, (2,), (coords[0, 2 * c][1] // 2,))
        cute.autovec_copy(pair, cute.local_tile(found, (2,), (c,)))
    return found


@cute.jit
def hide(scores, coords, place, head, queries, key0, keys: cute.Constexpr):
    """Make scores -inf where a query of the tile does not see a key."""
    whole = place.is_whole(*queries, key0, keys)
    if cute.const_expr(place.variant.mask is not None):
        area = ((head, head), queries, (key0, key0 + keys - 1))
        whole = whole and not place.truth(*area).false
    if not whole:
        for r in cute.range_constexpr(cute.size(scores, mode=[0])):
            for c in cute.range_constexpr(cute.size(scores, mode=[1])):
                key, query = coords[r, c]
                seen = place.sees(head, queries[0] + query, key0 + key)
                scores[r, c] = cute.where(seen, scores[r, c], -cute.Float32.inf)


def pieces_of(x, thread):
    """The floats (4, pieces) of a thread, in a part of a tile of dQ: of each four, threads have one
    after the other."""
    pieces = cute.size(x) // (VECTOR * THREADS)
    layout = cute.make_layout((VECTOR, pieces), stride=(1, VECTOR * THREADS))
    return cute.make_tensor(x.iterator.align(16) + thread * VECTOR, layout)


def add_sums(acc, sums, thread):
    """Add an accumulator to global memory as it lies in registers."""
    target = pieces_of(sums, thread)
    source = cute.make_tensor(acc.iterator, cute.make_layout(target.layout.shape))
    for i in range(cute.size(target, mode=[1])):
        values = [source[j, i] for j in range(VECTOR)]
        if current_target().is_gpu:
            address = target[None, i].iterator
            arch.inline_ptx("red.global.add.v4.f32 [$0], {$1, $2, $3, $4};", [address, *values])
        else:
            for j, value in enumerate(values):
                arch.atomic_add(target[None, i].iterator + j, value)


@cute.kernel
def convert_kernel(
    sums: cute.Tensor,
    grad_q: cute.Tensor,
    scale: cute.Float32,
    mma_q: cute.Constexpr,
    cfg: cute.Constexpr,
):
    """Write a tile of dQ from the workspace (floats, tiles, heads, batches)."""
    thread = arch.thread_idx()[0]
    tile, head, batch = arch.block_idx()
    (m, _), width, dtype = cfg.tile, grad_q.shape[1], grad_q.element_type
    acc = cute.make_rmem_tensor(mma_q.partition_shape_C((m, width)), cute.Float32)
    own = contiguous(sums[None, tile, head, batch])
    each = cfg.workspace(width) // cfg.groups
    part = cute.make_tensor(own.iterator + thread // THREADS * each, cute.make_layout(each))
    source = pieces_of(part, thread % THREADS)
    target = cute.make_tensor(acc.iterator, cute.make_layout(source.layout.shape))
    for i in cute.range_constexpr(cute.size(source, mode=[1])):
        cute.autovec_copy(source[None, i], target[None, i])
    acc.store(acc.load() * scale)
    coords = mma_q.get_slice(thread).partition_C(cute.make_identity_tensor((m, width)))
    store_rows(
        acc,
        as_rows(coords),
        lambda row: grad_q[tile * m + row, None, head, batch],
        lambda row: tile * m + row < grad_q.shape[0],
        dtype,
    )


def smem_layouts(dtype, head_k, head_v, cfg):
    """The staged layouts of the keys, values, queries and gradients, each (rows, head), and of dS
    as (queries, keys) with queries contiguous, whose two stages alternate.
    """
    m, n = cfg.tile
    return (
        sm90.make_smem_layout_a(ROW, (n, m, head_k), dtype, 1),
        sm90.make_smem_layout_a(ROW, (n, m, head_v), dtype, 1),
        sm90.make_smem_layout_b(ROW, (n, m, head_k), dtype, cfg.stages),
        sm90.make_smem_layout_b(ROW, (n, m, head_v), dtype, cfg.stages),
        sm90.make_smem_layout_a(COLUMN, (m, m, n), dtype, 2),
    )


def tiled_mmas(dtype, head_k, head_v, cfg):
    """The products: of scores, of dK, of dV, and of dQ, of which each warpgroup has columns."""
    k, mn, groups = OperandMajorMode.K, OperandMajorMode.MN, (cfg.groups, 1, 1)
    f32, registers = cute.Float32, warpgroup.OperandSource.RMEM
    types = (dtype, dtype)
    return (
        sm90.make_trivial_tiled_mma(*types, k, k, f32, groups, (ROWS, cfg.tile[0])),
        sm90.make_trivial_tiled_mma(*types, k, mn, f32, groups, (ROWS, head_k), registers),
        sm90.make_trivial_tiled_mma(*types, k, mn, f32, groups, (ROWS, head_v), registers),
        sm90.make_trivial_tiled_mma(
            *types, mn, mn, f32, (1, cfg.groups, 1), (ROWS, head_k // cfg.groups)
        ),
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
    batches), both Float32. Scores may be masked, not changed. Raises DSLTypeError for another tile
    than (64, 128), and heads beyond 128 elements.
    """
    (m, n), head_k, head_v, dtype = cfg.tile, q.shape[1], v.shape[1], q.element_type
    if cute.const_expr((m, n) != (64, 128) or max(head_k, head_v) > 128):
        raise DSLTypeError(
            f"attention's gradients on Hopper have no tile {cfg.tile} for heads of "
            f"{head_k} and {head_v} elements",
            hint="tile=(64, 128) has a kernel, for heads up to 128",
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
    query_grid = (cute.ceil_div(q.shape[0], m), q.shape[2], q.shape[3])
    prepare_kernel(out, grad, lse, stats, sums, m).launch(
        grid=query_grid, block=(THREADS, 1, 1), stream=stream
    )
    heads, swizzle = cute.Int32(k.shape[2] * k.shape[3]), cute.Int32(1)
    if cute.const_expr(variant.right is not None or variant.mask is not None):
        group = q.shape[2] // k.shape[2]
        held = cute.Int64(q.shape[0]) * (2 * (head_k + head_v)) * group
        fitting = cute.Int32(cute.max(cute.Int64(L2_BYTES) // cute.max(held, 1), 1))
        swizzle = cute.min(fitting, heads)
    tiles = cute.Int32(cute.ceil_div(k.shape[0], n))
    static = (mma, dtype, variant, cfg)
    backward_kernel(*loads, sums, stats, grad_k, grad_v, captured, scale, swizzle, *static).launch(
        grid=(tiles * heads, 1, 1),
        block=(cfg.threads, 1, 1),
        stream=stream,
        min_blocks_per_mp=1,
    )
    convert_kernel(sums, grad_q, scale, mma[3], cfg).launch(
        grid=query_grid, block=(THREADS * cfg.groups, 1, 1), stream=stream
    )
