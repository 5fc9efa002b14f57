"""The consumer warpgroups of attention's gradients on Hopper: their registers, and their walk over
the tiles of queries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import warp, warpgroup
from basedsl_cute.ops.flash.softmax import as_rows, as_wgmma_operand
from basedsl_cute.ops.flash.variant import LOG2_E
from basedsl_cute.ops.hopper.attention_backward_parts import (
    GROUPS,
    THREADS,
    add_sums,
    consumers_barrier,
    contiguous,
    hide,
    multiply,
    opaque_zero,
    stats_of,
)


class Operands(NamedTuple):
    """Operands of products, with stages of queries and gradients, of dS and of P."""

    queries: Any
    grads: Any
    queries_t: Any
    grads_t: Any
    changes: Any  # dS
    weights: Any  # P^T
    change: Any  # dS^T


class Consumer:
    """The accumulators and operands of a consumer thread, and the steps for a tile of queries."""

    def __init__(self, mma, staged, sstats, sums, place, key0, scale, lane, number, cfg):
        self.mma_s, self.mma_k, self.mma_v, self.mma_q = mma
        self.sk, self.sv, sq, sg, sds, *weights = staged
        self.sstats, self.sums, self.place, self.key0 = sstats, sums, place, key0
        self.factor, self.lane, self.number, self.cfg = scale * LOG2_E, lane, number, cfg
        (m, n), dtype = cfg.tile, self.sk.element_type
        self.head_k, self.head_v = (cute.size(x, mode=[1]) for x in (self.sk, self.sv))
        self.sq, self.sg, self.sds, self.weights_smem = sq, sg, sds, weights
        shapes = (
            self.mma_k.partition_shape_C((n, self.head_k)),
            self.mma_v.partition_shape_C((n, self.head_v)),
            self.mma_q.partition_shape_C((m, self.head_k)),
        )
        self.acc_k, self.acc_v, self.acc_q = (
            cute.make_rmem_tensor(shape, cute.Float32) for shape in shapes
        )
        self.acc_k.fill(0.0)
        self.acc_v.fill(0.0)
        # Of each part of the queries.
        part = self.mma_s.partition_shape_C((n, m // cfg.parts))
        self.scores, self.products, self.weights, self.change = (
            [cute.make_rmem_tensor(part, kind) for _ in range(cfg.parts)]
            for kind in (cute.Float32, cute.Float32, dtype, dtype)
        )
        store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
        self.to_smem = cute.make_tiled_copy_C(store, self.mma_s)
        to = self.to_smem.get_slice(lane)
        self.to_change = to.partition_D(turned(sds))
        if cfg.is_shared:
            self.to_weights = to.partition_D(turned(weights[0]))
        self.both = consumers_barrier(cfg)

    def operands(self):
        """The operands of products that change with the tile of queries; those in shared memory are
        the ones of the warpgroup's first thread.
        """
        mmas = (self.mma_s, self.mma_k, self.mma_v, self.mma_q)
        of_s, of_k, of_v, of_q = (x.get_slice(self.number * THREADS) for x in mmas)
        weights, change = (
            [as_wgmma_operand(x) for x in parts] for parts in (self.weights, self.change)
        )
        if self.cfg.is_shared:
            # Both products need all queries: their operands A are in shared memory.
            weights = [self.mma_v.make_fragment_A(of_v.partition_A(turned(self.weights_smem[0])))]
            change = [self.mma_k.make_fragment_A(of_k.partition_A(turned(self.sds)))]
        return Operands(
            self.mma_s.make_fragment_B(of_s.partition_B(self.sq)),
            self.mma_s.make_fragment_B(of_s.partition_B(self.sg)),
            self.mma_k.make_fragment_B(of_k.partition_B(turned(self.sq))),
            self.mma_v.make_fragment_B(of_v.partition_B(turned(self.sg))),
            self.mma_q.make_fragment_A(of_q.partition_A(self.sds)),
            weights,
            change,
        )

    def fixed(self):
        """The keys and the values as operands, known in this step only: ptxas would keep their
        descriptors through the loop, in registers that are not there.
        """
        of_s = self.mma_s.get_slice(self.number * THREADS + opaque_zero())
        return [self.mma_s.make_fragment_A(of_s.partition_A(x)) for x in (self.sk, self.sv)]

    def turned_keys(self):
        """The turned keys as operand, known in this step only as well."""
        of_q = self.mma_q.get_slice(self.number * THREADS + opaque_zero())
        return self.mma_q.make_fragment_B(of_q.partition_B(turned(self.sk)))

    def coords(self):
        """The places (key, query) of a thread's scores in a part, known in this step only too."""
        own = self.mma_s.get_slice(self.lane + opaque_zero())
        m, n = self.cfg.tile
        return as_rows(own.partition_C(cute.make_identity_tensor((n, m // self.cfg.parts))))

    def numbers(self, kind, stage, part):
        """The numbers of a part's queries: of `kind` 0 the logarithms, of 1 the deltas."""
        rows = self.cfg.tile[0] // self.cfg.parts
        return stats_of(
            cute.local_tile(self.sstats[None, kind, stage], (rows,), (part,)), self.coords()
        )

    def multiply_part(self, acc, fixed, staged, stage, part):
        """Start the product of keys or values with a part of the queries or gradients."""
        if self.cfg.parts == 1:
            multiply(self.mma_s, acc[0], fixed, staged, 0, stage, False)
        else:
            one = acc[part][None, 0, 0]
            multiply(
                self.mma_s,
                one,
                fixed[None, 0, None, None],
                staged[None, part, None, None],
                0,
                stage,
                False,
            )

    @cute.jit
    def weigh(self, head, query0, stage, part: cute.Constexpr):
        """Make scores into weights."""
        by_row = as_rows(self.scores[part])
        rows = self.cfg.tile[0] // self.cfg.parts
        first = query0 + part * rows
        logs = self.numbers(0, stage, part)
        queries = (first, first + rows - 1)
        hide(by_row, self.coords(), self.place, head, queries, self.key0, self.cfg.tile[1])
        for r in cute.range_constexpr(cute.size(by_row, mode=[0])):
            exponents = by_row[r, None].load() * self.factor - logs.load()
            by_row[r, None].store(cute.math.exp2(exponents, fastmath=True))
        weights = self.weights[part]
        weights.store(self.scores[part].load().to(weights.element_type))

    @cute.jit
    def differentiate(self, stage, part: cute.Constexpr):
        """Make products of values and gradients into changes of scores."""
        by_row, by_change = as_rows(self.scores[part]), as_rows(self.products[part])
        deltas = self.numbers(1, stage, part)
        for r in cute.range_constexpr(cute.size(by_row, mode=[0])):
            less = by_change[r, None].load() - deltas.load()
            by_change[r, None].store(less * by_row[r, None].load())
        change = self.change[part]
        change.store(self.products[part].load().to(change.element_type))

    def write(self, fragment, target, parity, part):
        """Write a part of changes or weights to shared memory."""
        source = self.to_smem.retile(fragment)
        if self.cfg.parts == 1:
            cute.copy(self.to_smem, source, target[None, None, None, parity])
        else:
            cute.copy(self.to_smem, source[None, None, 0], target[None, None, part, parity])

    def sum_values(self, x, stage, parity, part):
        """Start dV += P^T dO of a part of the queries."""
        at = parity if self.cfg.is_shared else None
        multiply(self.mma_v, self.acc_v, x.weights[part], x.grads_t, at, stage, True, part)

    def sum_keys(self, x, stage, parity, part):
        """Start dK += dS^T Q of a part of the queries."""
        at = parity if self.cfg.is_shared else None
        multiply(self.mma_k, self.acc_k, x.change[part], x.queries_t, at, stage, True, part)

    def sum_queries(self, x, parity):
        """Start dQ = dS K."""
        keys_t = self.turned_keys()
        multiply(self.mma_q, self.acc_q, x.changes, keys_t, parity, 0, False)

    def add_queries(self, head, tile, batch):
        """Add dQ of a tile to the workspace."""
        whole = contiguous(self.sums[None, tile, head, batch])
        each = self.cfg.workspace(self.head_k) // GROUPS
        own = cute.make_tensor(whole.iterator + self.number * each, cute.make_layout(each))
        add_sums(self.acc_q, own, self.lane % THREADS)


def turned(staged):
    """The stages of a tile with its first two modes exchanged."""
    return cute.select(staged, [1, 0, 2])


@cute.jit
def consume(own, pipes, tiles, batch):
    """Sum the gradients of a block's keys, over one tile of queries after the other."""
    at_k, at_v, at_q = [pipe.make_participants()[1] for pipe in pipes[:3]]
    grads = pipes[3]  # its stages go with those of the queries
    at_k.wait_and_advance()
    at_v.wait_and_advance()
    parity = cute.Int32(0)  # of dS
    x = own.operands()
    head, tile = tiles.begin()
    while head < tiles.end:
        stage = at_q.wait_and_advance()
        if cute.const_expr(own.cfg.parts == 1):
            change_scores(own, x, grads, stage, head, tile, parity)
        else:
            change_scores_by_parts(own, x, grads, stage, head, tile, parity)
        arch.fence_view_async_shared()
        # dS is in shared memory, that before has been read, and so have the numbers of queries.
        own.both.arrive_and_wait()
        if cute.const_expr(own.cfg.is_shared):
            own.sum_values(x, stage.index, parity, 0)
        own.sum_queries(x, parity)
        for part in cute.range_constexpr(own.cfg.parts):
            own.sum_keys(x, stage.index, parity, part)
        parity = 1 - parity
        warpgroup.wait_group(own.cfg.parts)
        grads.consumer_release(stage)
        own.add_queries(head, tile, batch)
        warpgroup.wait_group(0)
        stage.release()
        head, tile = tiles.following(head, tile)


@cute.jit
def change_scores(own, x, grads, stage, head, tile, parity):
    """Make the weights and changes of a tile, start dV, and write the changes."""
    rk, rv = own.fixed()
    own.multiply_part(own.scores, rk, x.queries, stage.index, 0)
    grads.consumer_wait(stage)
    own.multiply_part(own.products, rv, x.grads, stage.index, 0)
    warpgroup.wait_group(1)
    own.weigh(head, tile * own.cfg.tile[0], stage.index, 0)
    if cute.const_expr(own.cfg.is_shared):
        own.write(own.weights[0], own.to_weights, parity, 0)
    # Again, for its branch: ptxas moves waits to the beginning of a basic block.
    grads.consumer_wait(stage)
    warpgroup.wait_group(0)
    own.differentiate(stage.index, 0)
    if cute.const_expr(not own.cfg.is_shared):
        own.sum_values(x, stage.index, parity, 0)
    own.write(own.change[0], own.to_change, parity, 0)


@cute.jit
def change_scores_by_parts(own, x, grads, stage, head, tile, parity):
    """Make the weights and changes of a tile in two parts, so that the exponentials of the second
    run under dV of the first.
    """
    query0 = tile * own.cfg.tile[0]
    rk, rv = own.fixed()
    for part in cute.range_constexpr(2):
        own.multiply_part(own.scores, rk, x.queries, stage.index, part)
    grads.consumer_wait(stage)
    own.multiply_part(own.products, rv, x.grads, stage.index, 0)
    warpgroup.wait_group(2)
    own.weigh(head, query0, stage.index, 0)
    own.sum_values(x, stage.index, parity, 0)
    # Again, for its branch: ptxas moves waits to the beginning of a basic block.
    grads.consumer_wait(stage)
    warpgroup.wait_group(1)
    own.differentiate(stage.index, 0)
    own.multiply_part(own.products, own.fixed()[1], x.grads, stage.index, 1)
    own.write(own.change[0], own.to_change, parity, 0)
    own.weigh(head, query0, stage.index, 1)
    own.sum_values(x, stage.index, parity, 1)
    grads.consumer_wait(stage)
    warpgroup.wait_group(1)
    own.differentiate(stage.index, 1)
    own.write(own.change[1], own.to_change, parity, 1)
