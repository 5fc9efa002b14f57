"""The consumer warpgroups of attention's gradients on Hopper: their registers, and two walks over
the tiles of queries, one after the other, and with the products of the next tile ahead.
"""

from __future__ import annotations

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
from basedsl_cute.ops.hopper.gemm import pin_in_registers


class Consumer:
    """The accumulators and operands of a consumer thread, and the steps for a tile of queries."""

    def __init__(self, mma, staged, sstats, sums, place, key0, scale, lane, number, cfg):
        self.mma_s, self.mma_k, self.mma_v, self.mma_q = mma
        self.sk, self.sv, sq, sg, sds, *weights = staged
        self.sstats, self.sums, self.place, self.key0 = sstats, sums, place, key0
        self.factor, self.lane, self.number, self.cfg = scale * LOG2_E, lane, number, cfg
        (m, n), dtype = cfg.tile, self.sk.element_type
        self.head_k, self.head_v = (cute.size(x, mode=[1]) for x in (self.sk, self.sv))
        # Operands in shared memory are those of the warpgroup's first thread.
        of_s, of_k, of_v, of_q = (x.get_slice(number * THREADS) for x in mma)
        self.rq, self.rg = (self.mma_s.make_fragment_B(of_s.partition_B(x)) for x in (sq, sg))
        self.queries_t = self.mma_k.make_fragment_B(of_k.partition_B(turned(sq)))
        self.grads_t = self.mma_v.make_fragment_B(of_v.partition_B(turned(sg)))
        self.changes = self.mma_q.make_fragment_A(of_q.partition_A(sds))
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
            # Both products need all queries: their operands A are in shared memory.
            self.to_weights = to.partition_D(turned(weights[0]))
            self.weights_a = self.mma_v.make_fragment_A(of_v.partition_A(turned(weights[0])))
            self.change_a = self.mma_k.make_fragment_A(of_k.partition_A(turned(sds)))
        self.both = pipeline.NamedBarrier(1, THREADS * GROUPS)

    def fixed(self):
        """The keys, the values and the turned keys as operands, known in this step only: ptxas
        would keep their descriptors through the loop, in registers that are not there.
        """
        first = self.number * THREADS + opaque_zero()
        of_s, of_q = self.mma_s.get_slice(first), self.mma_q.get_slice(first)
        rk, rv = (self.mma_s.make_fragment_A(of_s.partition_A(x)) for x in (self.sk, self.sv))
        return rk, rv, self.mma_q.make_fragment_B(of_q.partition_B(turned(self.sk)))

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

    def sum_values(self, stage, parity):
        """Start dV += P^T dO."""
        if self.cfg.is_shared:
            multiply(self.mma_v, self.acc_v, self.weights_a, self.grads_t, parity, stage, True)
        else:
            weights = as_wgmma_operand(self.weights)
            multiply(self.mma_v, self.acc_v, weights, self.grads_t, None, stage, True)

    def sum_keys(self, stage, parity):
        """Start dK += dS^T Q."""
        if self.cfg.is_shared:
            multiply(self.mma_k, self.acc_k, self.change_a, self.queries_t, parity, stage, True)
        else:
            change = as_wgmma_operand(self.change)
            multiply(self.mma_k, self.acc_k, change, self.queries_t, None, stage, True)

    def add_queries(self, head, tile, batch):
        """Add dQ of a tile to the workspace."""
        part = contiguous(self.sums[None, tile, head, batch])
        each = self.cfg.workspace(self.head_k) // GROUPS
        own = cute.make_tensor(part.iterator + self.number * each, cute.make_layout(each))
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
    head, tile = tiles.begin()
    while head < tiles.end:
        stage = at_q.wait_and_advance()
        rk, rv, keys_t = own.fixed()
        multiply(own.mma_s, own.scores, rk, own.rq, 0, stage.index, False)
        grads.consumer_wait(stage)
        multiply(own.mma_s, own.products, rv, own.rg, 0, stage.index, False)
        warpgroup.wait_group(1)
        own.weigh(head, tile * own.cfg.tile[0], stage.index)
        own.weights.store(own.scores.load().to(own.weights.element_type))
        if cute.const_expr(own.cfg.is_shared):
            own.write(own.weights, own.to_weights, parity)
        # Again, for its branch: ptxas moves exponentials behind waits of one basic block.
        grads.consumer_wait(stage)
        warpgroup.wait_group(0)
        own.differentiate(stage.index)
        own.change.store(own.products.load().to(own.change.element_type))
        if cute.const_expr(not own.cfg.is_shared):
            own.sum_values(stage.index, parity)
        own.write(own.change, own.to_change, parity)
        arch.fence_view_async_shared()
        own.both.arrive_and_wait()  # dS is in shared memory, and that before has been read
        if cute.const_expr(own.cfg.is_shared):
            own.sum_values(stage.index, parity)
        multiply(own.mma_q, own.acc_q, own.changes, keys_t, parity, 0, False)
        own.sum_keys(stage.index, parity)
        parity = 1 - parity
        warpgroup.wait_group(1)
        grads.consumer_release(stage)
        own.add_queries(head, tile, batch)
        warpgroup.wait_group(0)
        stage.release()
        head, tile = tiles.following(head, tile)


@cute.jit
def consume_ahead(own, pipes, tiles, batch):
    """Sum the gradients of a block's keys; the scores of the next tile of queries become weights
    while the tensor cores sum the gradients of this one.
    """
    at_k, at_v, at_q = [pipe.make_participants()[1] for pipe in pipes[:3]]
    grads = pipes[3]  # its stages go with those of the queries
    at_k.wait_and_advance()
    at_v.wait_and_advance()
    parity = cute.Int32(0)  # of dS
    head, tile = tiles.begin()
    if head < tiles.end:
        rk, rv, _ = own.fixed()
        held = at_q.clone()  # the stage of this tile, while `at_q` is that of the next
        stage = at_q.wait_and_advance()
        multiply(own.mma_s, own.scores, rk, own.rq, 0, stage.index, False)
        grads.consumer_wait(stage)
        multiply(own.mma_s, own.products, rv, own.rg, 0, stage.index, False)
        warpgroup.wait_group(0)
        own.weigh(head, tile * own.cfg.tile[0], stage.index)
        own.differentiate(stage.index)
        own.weights.store(own.scores.load().to(own.weights.element_type))
        own.change.store(own.products.load().to(own.change.element_type))
        own.write(own.change, own.to_change, parity)
        arch.fence_view_async_shared()
        next_head, next_tile = tiles.following(head, tile)
        while next_head < tiles.end:
            rk, rv, keys_t = own.fixed()
            stage = at_q.wait_and_advance()
            multiply(own.mma_s, own.scores, rk, own.rq, 0, stage.index, False)
            grads.consumer_wait(stage)
            multiply(own.mma_s, own.products, rv, own.rg, 0, stage.index, False)
            own.sum_values(held.state.index, parity)
            own.both.arrive_and_wait()  # dS is in shared memory, and that before has been read
            multiply(own.mma_q, own.acc_q, own.changes, keys_t, parity, 0, False)
            own.sum_keys(held.state.index, parity)
            parity = 1 - parity
            warpgroup.wait_group(4)
            own.weigh(next_head, next_tile * own.cfg.tile[0], stage.index)
            pin_in_registers(own.scores)
            # Again, for their branches: ptxas moves waits to the beginning of a basic block.
            grads.consumer_wait(stage)
            warpgroup.wait_group(3)
            own.differentiate(stage.index)
            pin_in_registers(own.products)
            grads.consumer_wait(stage)
            warpgroup.wait_group(1)
            grads.consumer_release(held.state)
            own.weights.store(own.scores.load().to(own.weights.element_type))
            own.add_queries(head, tile, batch)
            warpgroup.wait_group(0)
            held.release()
            held.advance()
            own.change.store(own.products.load().to(own.change.element_type))
            own.write(own.change, own.to_change, parity)
            arch.fence_view_async_shared()
            head, tile = next_head, next_tile
            next_head, next_tile = tiles.following(head, tile)
        _, _, keys_t = own.fixed()
        own.sum_values(held.state.index, parity)
        own.both.arrive_and_wait()
        multiply(own.mma_q, own.acc_q, own.changes, keys_t, parity, 0, False)
        own.sum_keys(held.state.index, parity)
        warpgroup.wait_group(1)
        grads.consumer_release(held.state)
        own.add_queries(head, tile, batch)
        warpgroup.wait_group(0)
        held.release()
