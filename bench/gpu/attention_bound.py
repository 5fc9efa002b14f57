"""The most that attention by mma.sync reaches with tiles of 128 queries and 64 keys (head
dimension 128): the instructions of `tests/cute/programs/attention.py`, of which none waits for
another.

    python bench/gpu/attention_bound.py [--tiles N] [--out rows.json]

Two blocks of four warps share a multiprocessor, as there; a warp has 32 queries. For a tile it
issues 256 mma.sync and, as the kinds say, 80 ldmatrix.x4 (fragments of Q, K and V, one step ahead),
the arithmetic of the weights (for each of a thread's 64: a comparison, a multiply-add, ex2, an
addition; half a conversion), 16 cp.async a thread, and 128 multiplications that scale the results.
Nothing waits for copies or at barriers, and the arithmetic is that of registers which no product
writes. Results are numbers without meaning, in half as many registers as there.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch

import basedsl_cute as cute
from basedsl_cute import utils
from basedsl_cute.nvgpu import cpasync, warp
from basedsl_cute.runtime import from_dlpack

ROWS, COLUMNS, D, THREADS = 128, 64, 128, 128
WEIGHTS = ROWS * COLUMNS // THREADS  # of a thread
CHAINS = 4
ROUNDS = 9

KINDS = {
    "mma.sync": (),
    "and ldmatrix": ("ldmatrix",),
    "and the weights' arithmetic": ("ldmatrix", "weights"),
    "and cp.async": ("ldmatrix", "weights", "copies"),
    "and scaled results": ("ldmatrix", "weights", "copies", "scaled"),
    "without ldmatrix": ("weights", "copies"),
    "without the weights' arithmetic": ("ldmatrix", "copies"),
}


class Bound:
    """Endless tiles of one problem, with the parts that `parts` names, and so many chains of
    weights, each made of the last one of its chain.
    """

    def __init__(self, parts, chains=CHAINS):
        self.parts, self.chains = parts, chains

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor, tiles: cute.Int32, blocks: cute.Int32):
        atom = cute.make_composed_layout(
            cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1))
        )
        s_q = cute.tile_to_shape(atom, (ROWS, D), (0, 1))
        s_k = cute.tile_to_shape(atom, (COLUMNS, D), (0, 1))
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)),
            (THREADS // 32, 1, 1),
            permutation_mnk=(THREADS // 2, 16, 16),
        )
        copy = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL),
            cute.Float16,
            num_bits_per_copy=128,
        )
        load = cute.make_tiled_copy_tv(
            copy, cute.make_layout((8, 16), stride=(16, 1)), cute.make_layout((1, 8))
        )
        self.kernel(x, out, tiles, s_q, s_k, mma, load).launch(
            grid=blocks, block=THREADS, min_blocks_per_mp=2
        )

    @cute.kernel
    def kernel(
        self,
        x: cute.Tensor,
        out: cute.Tensor,
        tiles: cute.Int32,
        s_q: cute.ComposedLayout,
        s_k: cute.ComposedLayout,
        mma: cute.TiledMma,
        load: cute.TiledCopy,
    ):
        t, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
        smem = utils.SmemAllocator()
        sQ, sK, sV = (smem.allocate_tensor(cute.Float16, s, 128) for s in (s_q, s_k, s_k))
        g = cute.local_tile(x, (COLUMNS, D), (None, 0))
        thr_load = load.get_slice(t)
        from_x, to_q = thr_load.partition_S(g), thr_load.partition_D(sQ)
        to_k, to_v = thr_load.partition_D(sK), thr_load.partition_D(sV)
        first = block % cute.size(g, mode=[2])
        whole = cute.local_tile(x, (ROWS, D), (0, 0))
        cute.copy(load, thr_load.partition_S(whole), to_q)
        for to in (to_k, to_v):
            cute.copy(load, from_x[None, None, None, first], to)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()

        turned = cute.composition(sV, cute.make_layout((D, COLUMNS), stride=(COLUMNS, 1)))
        thr = mma.get_slice(t)
        rQ = mma.make_fragment_A(thr.partition_A(sQ))
        rK = mma.make_fragment_B(thr.partition_B(sK))
        rV = mma.make_fragment_B(thr.partition_B(turned))
        rO = cute.make_rmem_tensor(mma.partition_shape_C((ROWS, D // 2)), cute.Float32)
        rS = cute.make_rmem_tensor(mma.partition_shape_C((ROWS, COLUMNS // 2)), cute.Float32)
        rP = mma.make_fragment_A(mma.partition_shape_A((ROWS, 16)))
        rO.fill(0.0)
        rS.fill(0.0)
        rP.fill(0.5)
        plain = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
        across = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), cute.Float16)
        copies = (
            cute.make_tiled_copy_A(plain, mma),
            cute.make_tiled_copy_B(plain, mma),
            cute.make_tiled_copy_B(across, mma),
        )
        slices = [c.get_slice(t) for c in copies]
        fragments = [
            (c, s.partition_S(source), s.retile(r))
            for c, s, source, r in zip(copies, slices, (sQ, sK, turned), (rQ, rK, rV), strict=True)
        ]
        chains = cute.make_layout(self.chains)
        value, least, total = (cute.make_rmem_tensor(chains, cute.Float32) for _ in range(3))
        value.fill(cute.Float32(t) * 1e-3)
        least.fill(0.0)
        total.fill(0.0)
        scale = cute.Float32(tiles) * 1e-6
        if cute.const_expr("ldmatrix" not in self.parts):
            for c, source, r in fragments:
                cute.copy(c, source[None, None, 0], r[None, None, 0])
        for n in cute.range(tiles, unroll=1):
            tile = (first + n) % cute.size(g, mode=[2])
            for to in (to_v, to_k):
                if cute.const_expr("copies" in self.parts):
                    cute.copy(load, from_x[None, None, None, tile], to)
                    cute.arch.cp_async_commit_group()
                products = self.scores if to is to_v else self.results
                products(mma, fragments, rQ, rK, rV, rS, rO, rP, value, least, total, scale)
            if cute.const_expr("scaled" in self.parts):
                rO.store(rO.load() * scale * scale)  # half as many, twice
        cute.arch.cp_async_wait_group(0)
        add = cute.ReductionOp.ADD
        sums = [r.load().reduce(add, 0.0, 0) for r in (rO, rS, value, least, total)]
        out[block, t] = sums[0] + sums[1] + sums[2] + sums[3] + sums[4]

    @cute.jit
    def scores(self, mma, fragments, rQ, rK, rV, rS, rO, rP, value, least, total, scale):
        steps = D // 16
        for k in cute.range_constexpr(steps + 1):
            if cute.const_expr("ldmatrix" in self.parts and k < steps):
                for c, source, r in fragments[:2]:
                    cute.copy(c, source[None, None, k], r[None, None, k])
            if cute.const_expr(k > 0):
                at = k - 1 if "ldmatrix" in self.parts else 0
                self.multiply(mma, rS, rQ, rK, at, at)
                self.weights(rP, value, least, total, scale, k - 1, steps)

    @cute.jit
    def multiply(self, mma, sums, a, b, k_of_a: cute.Constexpr, k_of_b: cute.Constexpr):
        """Multiply fragments, into half as many sums as there: so nothing is spilled here."""
        for n in cute.range_constexpr(cute.size(b, mode=[1])):
            for m in cute.range_constexpr(cute.size(a, mode=[1])):
                c = sums[None, m, n % cute.size(sums, mode=[2])]
                cute.gemm(mma, c, a[None, m, k_of_a], b[None, n, k_of_b], c)

    @cute.jit
    def results(self, mma, fragments, rQ, rK, rV, rS, rO, rP, value, least, total, scale):
        steps = COLUMNS // 16
        for k in cute.range_constexpr(steps + 1):
            if cute.const_expr("ldmatrix" in self.parts and k < steps):
                c, source, r = fragments[2]
                cute.copy(c, source[None, None, k], r[None, None, k])
            if cute.const_expr(k > 0):
                at = k - 1 if "ldmatrix" in self.parts else 0
                self.multiply(mma, rO, rP, rV, 0, at)
                self.weights(rP, value, least, total, scale, k - 1, steps)

    @cute.jit
    def weights(self, rP, value, least, total, scale, k: cute.Constexpr, steps: cute.Constexpr):
        """Compute the part of half the weights that belongs to one of `steps`."""
        if cute.const_expr("weights" in self.parts):
            each = WEIGHTS // 2 // steps
            for i in cute.range_constexpr(each):
                c = (k * each + i) % self.chains
                least[c] = cute.arch.fmax(least[c], value[c])
                value[c] = cute.math.exp2(value[c] * scale - least[c], fastmath=True)
                total[c] += value[c]
                if cute.const_expr(i % 2):
                    pair = (k * each + i) // 2 % (cute.size(rP) // 2)
                    rP[2 * pair] = value[c - 1].to(cute.Float16)
                    rP[2 * pair + 1] = value[c].to(cute.Float16)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--tiles", type=int, default=512)
    parser.add_argument("--out")
    options = parser.parse_args()
    blocks = 2 * torch.cuda.get_device_properties(0).multi_processor_count
    x = torch.randn(4096, D, device="cuda").half() / 8
    out = torch.zeros(blocks, THREADS, device="cuda")
    tensors = from_dlpack(x, assumed_align=16), from_dlpack(out)
    calls, times = {}, {name: [] for name in KINDS}
    for name, parts in KINDS.items():
        compiled = cute.compile(Bound(parts), *tensors, options.tiles, blocks)
        calls[name] = lambda f=compiled: f(*tensors, options.tiles, blocks)
        calls[name]()
    for turn in range(ROUNDS + 2):
        for name, call in calls.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(500_000)
            start.record()
            call()
            stop.record()
            stop.synchronize()
            if turn >= 2:
                times[name].append(start.elapsed_time(stop) / 1e3)
    rows = {}
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for name in KINDS:
        work = 4 * ROWS * COLUMNS * D * options.tiles * blocks
        rows[name] = work / statistics.median(times[name]) / 1e12
        print(f"{name:<40} {rows[name]:7.1f} TFLOP/s")
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
