"""The consumer warpgroups of attention's gradients on Hopper: their registers, and their walk over
the tiles of queries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import warp, warpgroup
from basedsl_cute.ops.flash.softmax import as_rows, as_wgmma_operand
from basedsl_cute.ops.flash.variant import LOG2_E
from basedsl_cute.ops.hopper.attention_backward_parts import (
    GROUPS,
    THREADS,
    add_sums,
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
            self.mma_s.partition_shape_C((n, m)),
            self.mma_s.partition_shape_C((n, m)),
        )
        self.acc_k, self.acc_v, self.acc_q, self.scores, self.products = (
            cute.make_rmem_tensor(shape, cute.Float32) for shape in shapes
        )
        self.acc_k.fill(0.0)
        self.acc_v.fill(0.0)
        self.weights, self.change = (
            cute.make_rmem_tensor(self.scores.layout, dtype) for _ in range(2)
        )
        store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
        self.to_smem = cute.make_tiled_copy_C(store, self.mma_s)
        to = self.to_smem.get_slice(lane)
        self.to_change = to.partition_D(turned(sds))
        if cfg.is_shared:
            self.to_weights = to.partition_D(turned(weights[0]))
        self.both = pipeline.NamedBarrier(1, THREADS * GROUPS)

    def operands(self):
        """The operands of products that change with the tile of queries; those in shared memory are
        the ones of the warpgroup's first thread.
        """
        mmas = (self.mma_s, self.mma_k, self.mma_v, self.mma_q)
        of_s, of_k, of_v, of_q = (x.get_slice(self.number * THREADS) for x in mmas)
        weights, change = as_wgmma_operand(self.weights), as_wgmma_operand(self.change)
        if self.cfg.is_shared:
            # Both products need all queries: their operands A are in shared memory.
            weights = self.mma_v.make_fragment_A(of_v.partition_A(turned(self.weights_smem[0])))
            change = self.mma_k.make_fragment_A(of_k.partition_A(turned(self.sds)))
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
        """The places (key, query) of a thread's scores, known in this step only as well."""
        own = self.mma_s.get_slice(self.lane + opaque_zero())
        return as_rows(own.partition_C(cute.make_identity_tensor(self.cfg.tile[::-1])))

    @cute.jit
    def weigh(self, head, query0, stage):
        """Make scores into weights."""
        by_row = as_rows(self.scores)
        coords = self.coords()
        logs = stats_of(self.sstats[None, 0, stage], coords)
        queries = (query0, query0 + self.cfg.tile[0] - 1)
        hide(by_row, coords, self.place, head, queries, self.key0, self.cfg.tile[1])
        for r in cute.range_constexpr(cute.size(by_row, mode=[0])):
            exponents = by_row[r, None].load() * self.factor - logs.load()
            by_row[r, None].store(cute.math.exp2(exponents, fastmath=True))

    @cute.jit
    def differentiate(self, stage):
        """Make products of values and gradients into changes of scores."""
        by_row, by_change = as_rows(self.scores), as_rows(self.products)
        deltas = stats_of(self.sstats[None, 1, stage], self.coords())
        for r in cute.range_constexpr(cute.size(by_row, mode=[0])):
            part = by_change[r, None].load() - deltas.load()
            by_change[r, None].store(part * by_row[r, None].load())

    def write(self, fragment, target, parity):
        """Write a fragment of changes or weights to shared memory."""
        cute.copy(self.to_smem, self.to_smem.retile(fragment), target[None, None, None, parity])

    def sum_values(self, x, stage, parity):
        """Start dV += P^T dO."""
        at = parity if self.cfg.is_shared else None
        multiply(self.mma_v, self.acc_v, x.weights, x.grads_t, at, stage, True)

    def sum_keys(self, x, stage, parity):
        """Start dK += dS^T Q."""
        at = parity if self.cfg.is_shared else None
        multiply(self.mma_k, self.acc_k, x.change, x.queries_t, at, stage, True)

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
        rk, rv = own.fixed()
        multiply(own.mma_s, own.scores, rk, x.queries, 0, stage.index, False)
        grads.consumer_wait(stage)
        multiply(own.mma_s, own.products, rv, x.grads, 0, stage.index, False)
        warpgroup.wait_group(1)
        own.weigh(head, tile * own.cfg.tile[0], stage.index)
        own.weights.store(own.scores.load().to(own.weights.element_type))
        if cute.const_expr(own.cfg.is_shared):
            own.write(own.weights, own.to_weights, parity)
        # Again, for its branch: ptxas moves waits to the beginning of a basic block.
        grads.consumer_wait(stage)
        warpgroup.wait_group(0)
        own.differentiate(stage.index)
        own.change.store(own.products.load().to(own.change.element_type))
        if cute.const_expr(not own.cfg.is_shared):
            own.sum_values(x, stage.index, parity)
        own.write(own.change, own.to_change, parity)
        arch.fence_view_async_shared()
        own.both.arrive_and_wait()  # dS is in shared memory, and that before has been read
        if cute.const_expr(own.cfg.is_shared):
            own.sum_values(x, stage.index, parity)
        own.sum_queries(x, parity)
        own.sum_keys(x, stage.index, parity)
        parity = 1 - parity
        warpgroup.wait_group(1)
        grads.consumer_release(stage)
        own.add_queries(head, tile, batch)
        warpgroup.wait_group(0)
        stage.release()
        head, tile = tiles.following(head, tile)
