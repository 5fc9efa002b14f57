"""The gradients of attention by mma.sync (sm_80 and later), the same in every run.

Two kernels make the weights P = exp(S - lse) again, tile by tile, and from them
dS = P (dO V^T - delta), where delta of a row is the sum of dO O. One has a block for each tile of
keys, walks over the queries that see them, and sums dV = P^T dO and dK = dS^T Q; the other has a
block for each tile of queries, walks over the keys, and sums dQ = dS K. Nothing is added atomically
but the gradient of a bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import CopyUniversalOp, warp
from basedsl_cute.ops.ampere.attention import sequence_of
from basedsl_cute.ops.ampere.attention_rows import COLUMN, ROW, RowCopier, check_copies
from basedsl_cute.ops.ampere.mainloop import FragmentLoader
from basedsl_cute.ops.flash.softmax import as_operand, as_rows
from basedsl_cute.ops.flash.variant import LOG2_E, Place
from basedsl_cute.utils import hopper_helpers as sm90

ROWS = 4  # of a block of `delta_kernel`: a warp has one


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernels.

    `tile` is (rows, columns): the keys or queries whose gradients a block sums, and the queries or
    keys that a step of its walk has. `warps` are so many along rows, and along columns: where
    several share rows, each sums a part of the columns of gradients, and P and dS go through shared
    memory, since it needs those of the others.

    Raises ValueError for extents and numbers of warps that are no integers from 1.
    """

    tile: tuple[int, int] = (64, 64)
    warps: tuple[int, int] = (4, 1)

    def __post_init__(self) -> None:
        counts = (*self.tile, *self.warps)
        if len(counts) != 4 or not all(type(x) is int and x > 0 for x in counts):
            raise ValueError(f"{self}: tile and warps are two integers from 1 each")

    @property
    def threads(self) -> int:
        return arch.WARP_SIZE * self.warps[0] * self.warps[1]


def check_config(cfg: Config, head: int, head_v: int) -> None:
    """Raise DSLTypeError for a tile that the warps or their copies do not divide, and for heads
    without a layout.
    """
    multiples = tuple(16 * warps for warps in cfg.warps)
    if any(x % y for x, y in zip(cfg.tile, multiples, strict=True)):
        raise DSLTypeError(
            f"{cfg.warps[0]} x {cfg.warps[1]} warps cannot share a tile {cfg.tile}",
            hint=f"its extents must be multiples of {multiples}",
        )
    for extent in (head, head_v):
        if extent % multiples[1]:
            raise DSLTypeError(
                f"{cfg.warps[1]} warps cannot share heads of {extent} elements",
                hint=f"their extents must be multiples of {multiples[1]}",
            )
    check_copies(cfg.threads, [(rows, extent) for rows in cfg.tile for extent in (head, head_v)])


def shared_memory(cfg: Config, head: int, head_v: int) -> int:
    """Return the bytes of shared memory of a block: its tiles of the queries, the gradients, the
    keys and the values, and P and dS where warps share rows.
    """
    rows, columns = cfg.tile
    shared = 2 * rows * columns if cfg.warps[1] > 1 else 0
    return 2 * ((rows + columns) * (head + head_v) + shared)


@cute.kernel
def delta_kernel(out: cute.Tensor, grad: cute.Tensor, delta: cute.Tensor):
    """delta = sum over a row of grad * out."""
    thread = arch.thread_idx()[0]
    tile, head, batch = arch.block_idx()
    row, lane = tile * ROWS + thread // arch.WARP_SIZE, thread % arch.WARP_SIZE
    total = cute.Float32(0.0)
    if row < out.shape[0]:
        for column in cute.range(lane, out.shape[1], arch.WARP_SIZE, unroll=1):
            product = cute.Float32(out[row, column, head, batch])
            total += product * cute.Float32(grad[row, column, head, batch])
    total = arch.warp_reduction_sum(total)
    if row < out.shape[0] and lane == 0:
        delta[row, head, batch] = total


class Tile:
    """One tile in shared memory with its copies, and its two roles as an operand: `by_row` as it
    lies, `by_column` transposed.
    """

    def __init__(self, smem, dtype, rows, columns, cfg, thread):
        layout = sm90.make_smem_layout_b(ROW, (rows, rows, columns), dtype, 1)
        self.staged = smem.allocate_tensor(dtype, layout, 1024)
        self.turned = cute.select(self.staged, [1, 0, 2])
        self.copier = RowCopier(self.staged, cfg, thread)
        self.shape, self.thread = (rows, columns), thread

    def as_a(self, mma):
        """Fragments of operand A (rows, columns), and their loads."""
        fragment = mma.make_fragment_A(mma.partition_shape_A(self.shape))
        load = FragmentLoader(cute.make_tiled_copy_A, ROW, mma, self.staged, fragment, self.thread)
        return fragment, load

    def as_b(self, mma):
        """Fragments of operand B (rows, columns), and their loads."""
        fragment = mma.make_fragment_B(mma.partition_shape_B(self.shape))
        load = FragmentLoader(cute.make_tiled_copy_B, ROW, mma, self.staged, fragment, self.thread)
        return fragment, load

    def as_turned_b(self, mma):
        """Fragments of operand B (columns, rows), and their loads."""
        fragment = mma.make_fragment_B(mma.partition_shape_B(self.shape[::-1]))
        load = FragmentLoader(
            cute.make_tiled_copy_B, COLUMN, mma, self.turned, fragment, self.thread
        )
        return fragment, load


def tiles_of(smem, dtype, lengths, widths, cfg, thread):
    """The tiles of the queries, the gradients, the keys and the values in shared memory."""
    return [Tile(smem, dtype, rows, width, cfg, thread) for rows in lengths for width in widths]


def multiply(mma, acc, a, b):
    """acc += A B^T, of fragments loaded block by block of K; `a` may be in registers already."""
    fragment_b, load_b = b
    fragment_a, load_a = a if isinstance(a, tuple) else (a, None)
    for block in range(cute.size(fragment_b, mode=[2])):
        if load_a is not None:
            load_a.load(block, 0)
        load_b.load(block, 0)
        cute.gemm(mma, acc, fragment_a[None, None, block], fragment_b[None, None, block], acc)


class NextOperand:
    """Accumulators of a product (rows, columns) as operand A of the next one: in registers, or in
    shared memory where several warps share rows.
    """

    def __init__(self, smem, mma, dtype, rows, columns, cfg, thread):
        self.dtype, self.tile = dtype, None
        if cfg.warps[1] > 1:
            self.tile = Tile(smem, dtype, rows, columns, cfg, thread)
            self.operand = self.tile.as_a(mma)
            pairs = cute.make_copy_atom(CopyUniversalOp(), dtype, num_bits_per_copy=32)
            self.store = cute.make_tiled_copy_C(pairs, mma)
            staged = self.tile.staged[None, None, 0]
            self.target = self.store.get_slice(thread).partition_D(staged)

    def __call__(self, acc):
        made = cute.make_rmem_tensor(acc.layout, self.dtype)
        made.store(acc.load().to(self.dtype))
        if self.tile is None:
            return as_operand(made)
        cute.copy(self.store, self.store.retile(made), self.target)
        return self.operand


class Rows:
    """Rows `first` on of a tensor (rows, columns, heads, batches), of which `count` are inside."""

    def __init__(self, x, start, head, batch, first, count):
        self.x, self.start, self.head, self.batch = x, start, head, batch
        self.first, self.count = first, count

    def __call__(self, row):
        at = self.first + row
        inside = at < self.count
        return self.x[self.start + cute.where(inside, at, 0), None, self.head, self.batch], inside


class RowNumbers:
    """The logarithm of a query's sum and its delta; tiles reach beyond the end of the sequence."""

    def __init__(self, lse, delta, sequence, head, batch):
        self.lse, self.delta, self.sequence = lse, delta, sequence
        self.head, self.batch = head, batch

    def __call__(self, query):
        inside = cute.min(query, self.sequence.queries - 1) + self.sequence.first_query
        log, delta = (x[inside, self.head, self.batch] for x in (self.lse, self.delta))
        # All scores of such a row are -inf, whose difference from it would be no number.
        return cute.where(log == -cute.Float32.inf, 0.0, log), delta


@cute.jit
def differentiate(
    scores,
    weights,
    place,
    scale,
    query_of,
    key_of,
    head,
    rows_of,
    bias_grad,
    by_column: cute.Constexpr,
):
    """Make the products of a tile into weights P, and `weights`, which is dO V^T, into dS.

    `query_of(r, c)` and `key_of(r, c)` are the place of an element; `rows_of(query)` the logarithm
    of the query's sum and its delta. With `by_column` columns are queries.
    """
    variant = place.variant
    rows, columns = (range(cute.size(scores, mode=[i])) for i in (0, 1))
    places = [(r, c) for r in rows for c in columns]
    if cute.const_expr(by_column and not variant.has_only_windows):
        # Query by query: what functions make of one would else be kept for its next score.
        places = [(r, c) for c in columns for r in rows]
    for r, c in places:
        query, key = query_of(r, c), key_of(r, c)
        log, delta = rows_of(query)
        score, slope = scores[r, c] * scale, 1.0
        if cute.const_expr(variant.is_scored):
            score, slope = place.score_and_slope(score, head, query, key)
        seen = place.sees(head, query, key) & (query < place.sequence.queries)
        weight = cute.math.exp2((score - log) * LOG2_E, fastmath=True)
        weight = cute.where(seen, weight, 0.0)
        change = cute.where(seen, weight * (weights[r, c] - delta), 0.0)
        if cute.const_expr(bias_grad is not None):
            if seen:
                target = bias_grad[query, key, head, None]
                arch.atomic_add(target.iterator + target.layout(place.batch), change)
        scores[r, c] = weight
        weights[r, c] = change * slope * scale


def tiled_mma(dtype, cfg):
    return cute.make_tiled_mma(
        warp.MmaF16BF16Op(dtype, cute.Float32, (16, 8, 16)),
        (*cfg.warps, 1),
        permutation_mnk=(16 * cfg.warps[0], 16 * cfg.warps[1], 16),
    )


def store_rows(acc, coords, target_of, inside_of, dtype):
    """Write a thread's rows of an accumulator, in pairs of neighbouring columns."""
    sums = as_rows(acc)
    for r in range(cute.size(sums, mode=[0])):
        values = cute.make_rmem_tensor((cute.size(sums, mode=[1]),), dtype)
        values.store(sums[r, None].load().to(dtype).reshape(values.shape))
        write_row(values, coords, r, target_of, inside_of)


@cute.jit
def write_row(values, coords, r: cute.Constexpr, target_of, inside_of):
    row = coords[r, 0][0]
    if inside_of(row):
        target = target_of(row)
        for c in cute.range_constexpr(cute.size(values) // 2):
            pair = cute.local_tile(target, (2,), (coords[r, 2 * c][1] // 2,))
            cute.autovec_copy(cute.local_tile(values, (2,), (c,)), pair)


@cute.kernel
def keys_kernel(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    grad: cute.Tensor,
    lse: cute.Tensor,
    delta: cute.Tensor,
    grad_k: cute.Tensor,
    grad_v: cute.Tensor,
    lengths: tuple,
    extras: tuple,
    scale: cute.Float32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
):
    """The gradients of a tile of keys and values."""
    (n, m), head_k, head_v = cfg.tile, q.shape[1], v.shape[1]
    dtype = q.element_type
    thread = arch.thread_idx()[0]
    tile, key_head, batch = arch.block_idx()
    slopes, _, bias, captured = extras
    sequence, own, own_keys, _ = sequence_of(q, k, lengths, batch)
    place = Place(variant, sequence, batch, slopes, bias, captured)
    group = q.shape[2] // k.shape[2]
    if tile * n < sequence.keys:
        smem, mma = cute.utils.SmemAllocator(), tiled_mma(dtype, cfg)
        sq, sg, sk, sv = tiles_of(smem, dtype, (m, n), (head_k, head_v), cfg, thread)
        weights, changes = (NextOperand(smem, mma, dtype, n, m, cfg, thread) for _ in range(2))
        keys_a, values_a = sk.as_a(mma), sv.as_a(mma)
        queries_b, grads_b = sq.as_b(mma), sg.as_b(mma)
        queries_t, grads_t = sq.as_turned_b(mma), sg.as_turned_b(mma)
        acc_k = mma.make_fragment_C(mma.partition_shape_C((n, head_k)))
        acc_v = mma.make_fragment_C(mma.partition_shape_C((n, head_v)))
        acc_k.fill(0.0)
        acc_v.fill(0.0)
        own_thread = mma.get_slice(thread)
        coords = as_rows(own_thread.partition_C(cute.make_identity_tensor((n, m))))

        key0 = tile * n
        at = (key_head, own_keys, key0, sequence.keys)
        sk.copier.copy(Rows(k, sequence.first_key, *at))
        sv.copier.copy(Rows(v, sequence.first_key, *at))
        arch.cp_async_commit_group()
        begin, end = place.queries_of(key0, cute.min(key0 + n, sequence.keys) - 1)
        low, high = begin // m, cute.ceil_div(end, m)
        own_keys_range = (key0, key0 + n - 1)
        for member in cute.range(group, unroll=1):
            head = key_head * group + member
            for i in cute.range(low, high, unroll=1):
                query0 = i * m
                if not place.truth((head, head), (query0, query0 + m - 1), own_keys_range).true:
                    continue
                arch.sync_threads()
                at = (head, own, query0, sequence.queries)
                sq.copier.copy(Rows(q, sequence.first_query, *at))
                sg.copier.copy(Rows(grad, sequence.first_query, *at))
                arch.cp_async_commit_group()
                arch.cp_async_wait_group(0)
                arch.sync_threads()
                scores = mma.make_fragment_C(mma.partition_shape_C((n, m)))
                products = mma.make_fragment_C(mma.partition_shape_C((n, m)))
                scores.fill(0.0)
                products.fill(0.0)
                multiply(mma, scores, keys_a, queries_b)
                multiply(mma, products, values_a, grads_b)

                rows_of = RowNumbers(lse, delta, sequence, head, own)
                differentiate(
                    as_rows(scores),
                    as_rows(products),
                    place,
                    scale,
                    lambda r, c, query0=query0: query0 + coords[r, c][1],
                    lambda r, c: key0 + coords[r, c][0],
                    head,
                    rows_of,
                    None,
                    True,
                )
                p, ds = weights(scores), changes(products)
                if cute.const_expr(cfg.warps[1] > 1):
                    arch.sync_threads()
                multiply(mma, acc_v, p, grads_t)
                multiply(mma, acc_k, ds, queries_t)
        arch.cp_async_wait_group(0)

        def inside_of(row):
            return key0 + row < sequence.keys

        for acc, target, width in ((acc_k, grad_k, head_k), (acc_v, grad_v, head_v)):
            store_rows(
                acc,
                as_rows(own_thread.partition_C(cute.make_identity_tensor((n, width)))),
                lambda row, x=target: x[sequence.first_key + key0 + row, None, key_head, own_keys],
                inside_of,
                dtype,
            )


@cute.kernel
def queries_kernel(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    grad: cute.Tensor,
    lse: cute.Tensor,
    delta: cute.Tensor,
    grad_q: cute.Tensor,
    grad_bias,  # a tensor (queries, keys, heads, batches) or None
    lengths: tuple,
    extras: tuple,
    scale: cute.Float32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
):
    """The gradients of a tile of queries."""
    (m, n), head_k, head_v = cfg.tile, q.shape[1], v.shape[1]
    dtype = q.element_type
    thread = arch.thread_idx()[0]
    tile, head, batch = arch.block_idx()
    slopes, _, bias, captured = extras
    sequence, own, own_keys, _ = sequence_of(q, k, lengths, batch)
    place = Place(variant, sequence, batch, slopes, bias, captured)
    key_head = head // (q.shape[2] // k.shape[2])
    if tile * m < sequence.queries:
        smem, mma = cute.utils.SmemAllocator(), tiled_mma(dtype, cfg)
        sq, sg, sk, sv = tiles_of(smem, dtype, (m, n), (head_k, head_v), cfg, thread)
        changes = NextOperand(smem, mma, dtype, m, n, cfg, thread)
        queries_a, grads_a = sq.as_a(mma), sg.as_a(mma)
        keys_b, values_b, keys_t = sk.as_b(mma), sv.as_b(mma), sk.as_turned_b(mma)
        acc = mma.make_fragment_C(mma.partition_shape_C((m, head_k)))
        acc.fill(0.0)
        own_thread = mma.get_slice(thread)
        coords = as_rows(own_thread.partition_C(cute.make_identity_tensor((m, n))))

        query0 = tile * m
        at = (head, own, query0, sequence.queries)
        sq.copier.copy(Rows(q, sequence.first_query, *at))
        sg.copier.copy(Rows(grad, sequence.first_query, *at))
        arch.cp_async_commit_group()
        begin, end = place.keys_of(query0, cute.min(query0 + m, sequence.queries) - 1)
        low, high = begin // n, cute.ceil_div(end, n)
        own_queries = (query0, query0 + m - 1)
        for i in cute.range(low, high, unroll=1):
            key0 = i * n
            if not place.truth((head, head), own_queries, (key0, key0 + n - 1)).true:
                continue
            arch.sync_threads()
            at = (key_head, own_keys, key0, sequence.keys)
            sk.copier.copy(Rows(k, sequence.first_key, *at))
            sv.copier.copy(Rows(v, sequence.first_key, *at))
            arch.cp_async_commit_group()
            arch.cp_async_wait_group(0)
            arch.sync_threads()
            scores = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            products = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            scores.fill(0.0)
            products.fill(0.0)
            multiply(mma, scores, queries_a, keys_b)
            multiply(mma, products, grads_a, values_b)

            rows_of = RowNumbers(lse, delta, sequence, head, own)
            differentiate(
                as_rows(scores),
                as_rows(products),
                place,
                scale,
                lambda r, c: query0 + coords[r, c][0],
                lambda r, c, key0=key0: key0 + coords[r, c][1],
                head,
                rows_of,
                grad_bias,
                False,
            )
            ds = changes(products)
            if cute.const_expr(cfg.warps[1] > 1):
                arch.sync_threads()
            multiply(mma, acc, ds, keys_t)
        arch.cp_async_wait_group(0)
        store_rows(
            acc,
            as_rows(own_thread.partition_C(cute.make_identity_tensor((m, head_k)))),
            lambda row: grad_q[sequence.first_query + query0 + row, None, head, own],
            lambda row: query0 + row < sequence.queries,
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
    delta: cute.Tensor,
    grad_q: cute.Tensor,
    grad_k: cute.Tensor,
    grad_v: cute.Tensor,
    grad_bias: cute.Tensor | None,
    lengths: tuple,
    extras: tuple,
    scale: cute.Float32,
    batches: cute.Int32,
    longest: cute.Int32,
    longest_keys: cute.Int32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Constexpr = None,
):
    """Compute the gradients of attention from that of its result.

    Tensors are as for `ops.ampere.attention.forward`, without pages; `grad` is the gradient of
    `out`, `lse` (queries, heads, batches) what the forward pass returned, `delta` of its extents
    is written. `grad_bias` (queries, keys, heads, batches) in Float32 is added to.

    Raises DSLTypeError for a tile that warps or copies do not divide, and for heads without a
    layout.
    """
    check_config(cfg, q.shape[1], v.shape[1])
    rest = (lengths, extras, scale, variant, cfg)
    if out.shape[0] > 0:
        delta_grid = (cute.ceil_div(out.shape[0], ROWS), out.shape[2], out.shape[3])
        delta_kernel(out, grad, delta).launch(
            grid=delta_grid, block=(ROWS * arch.WARP_SIZE, 1, 1), stream=stream
        )
    if longest_keys > 0:
        keys_kernel(q, k, v, grad, lse, delta, grad_k, grad_v, *rest).launch(
            grid=(cute.ceil_div(longest_keys, cfg.tile[0]), k.shape[2], batches),
            block=(cfg.threads, 1, 1),
            stream=stream,
        )
    if longest > 0:
        queries_kernel(q, k, v, grad, lse, delta, grad_q, grad_bias, *rest).launch(
            grid=(cute.ceil_div(longest, cfg.tile[0]), q.shape[2], batches),
            block=(cfg.threads, 1, 1),
            stream=stream,
        )
