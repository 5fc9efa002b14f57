"""A second accumulator for products of 8-bit floats on Hopper: its cost in the tensor cores' time.

    python bench/gpu/fp8_promotion.py [--steps N] [--out rows.json]

Hopper's sums of 8-bit floats keep 14 bits or so, so programs add the products of each 128 elements
of K to a second accumulator in float32, scaled. Each block has two warp groups, each of which
multiplies 64 rows; A and B lie in shared memory from the beginning, so nothing waits for memory.
The kinds are one accumulator, and a second one, added after each product has ended or while one of
the next runs (`in a row`: how many products are issued before all are waited for). The results, of
one block for each multiprocessor, bound what a program with such tiles reaches.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch

import basedsl_cute as cute
from basedsl_cute import utils
from basedsl_cute.nvgpu import warpgroup
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.utils import hopper_helpers as sm90

GROUPS, STAGES, K = 2, 4, 128
ROUNDS = 9


class Promotion:
    """`in_a_row` 0 is one accumulator, 1 a second one that nothing overlaps."""

    def __init__(self, n, in_a_row):
        self.n, self.in_a_row = n, in_a_row
        self.tile = (64 * GROUPS, n, K)

    @cute.jit
    def __call__(self, out: cute.Tensor, steps: cute.Int32, blocks: cute.Int32):
        row = utils.LayoutEnum.ROW_MAJOR
        kind = cute.Float8E4M3FN
        mma = sm90.make_trivial_tiled_mma(
            kind,
            kind,
            row.sm90_mma_major_mode(),
            warpgroup.OperandMajorMode.K,
            cute.Float32,
            (GROUPS, 1, 1),
            tiler_mn=(64, self.n),
        )
        la = sm90.make_smem_layout_a(row, self.tile, kind, STAGES)
        lb = sm90.make_smem_layout_b(row, self.tile, kind, STAGES)

        @cute.struct
        class Storage:
            a: cute.struct.Align[cute.struct.MemRange[kind, cute.cosize(la)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[kind, cute.cosize(lb)], 1024]

        self.storage = Storage
        self.kernel(out, steps, mma, la, lb).launch(grid=blocks, block=128 * GROUPS)

    @cute.kernel
    def kernel(self, out: cute.Tensor, steps: cute.Int32, mma: cute.TiledMma, la, lb):
        t = cute.arch.thread_idx()[0]
        storage = utils.SmemAllocator().allocate(self.storage)
        for raw, layout in ((storage.a, la), (storage.b, lb)):
            pointer = cute.recast_ptr(raw.data_ptr(), dtype=cute.Uint32)
            words = cute.make_tensor(pointer, cute.make_layout(cute.cosize(layout) // 4))
            for i in range(t, cute.size(words), 128 * GROUPS):
                mixed = (i.to(cute.Uint32) + 1) * cute.Uint32(2654435761)
                words[i] = (mixed ^ (mixed >> 15)) & cute.Uint32(0xB7B7B7B7)  # finite, below 2
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        s_a = storage.a.get_tensor(la.outer, swizzle=la.inner)
        s_b = storage.b.get_tensor(lb.outer, swizzle=lb.inner)
        group = cute.arch.make_warp_uniform(t // 128)
        thread = mma.get_slice(cute.make_layout(GROUPS, stride=128)(group))
        r_a = mma.make_fragment_A(thread.partition_A(s_a))
        r_b = mma.make_fragment_B(thread.partition_B(s_b))
        total = cute.make_rmem_tensor(mma.partition_shape_C(self.tile[:2]), cute.Float32)
        part = cute.make_rmem_tensor_like(total)
        other = cute.make_rmem_tensor_like(total)
        total.fill(0.0)
        scale = cute.Float32(steps) * 1e-6
        if cute.const_expr(self.in_a_row == 0):
            for step in cute.range(steps, unroll=1):
                self.multiply(mma, total, r_a, r_b, step, True)
                warpgroup.wait_group(1)
            warpgroup.wait_group(0)
        else:
            for begin in cute.range(0, steps, self.in_a_row, unroll=1):
                self.multiply(mma, part, r_a, r_b, begin, False)
                for i in cute.range_constexpr(1, self.in_a_row + 1):
                    new, old = (part, other) if i % 2 == 0 else (other, part)
                    last = i == self.in_a_row
                    if cute.const_expr(not last):
                        self.multiply(mma, new, r_a, r_b, begin + i, False)
                    warpgroup.wait_group(0 if last else 1)
                    for j in cute.range_constexpr(cute.size(total)):
                        total[j] += old[j] * scale
        sums = total.load().reduce(cute.ReductionOp.ADD, 0.0)
        out[cute.arch.block_idx()[0], t] = sums

    @cute.jit
    def multiply(self, mma: cute.TiledMma, acc: cute.Tensor, r_a, r_b, step, adds):
        mma.set(warpgroup.Field.ACCUMULATE, adds)
        warpgroup.fence()
        for k in cute.range_constexpr(cute.size(r_a, mode=[2])):
            c = (None, None, k, step % STAGES)
            cute.gemm(mma, acc, r_a[c], r_b[c], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--steps", type=int, default=4096)
    parser.add_argument("--out")
    options = parser.parse_args()
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(blocks, 128 * GROUPS, device="cuda")
    tensor = from_dlpack(out)
    kinds = {
        f"64 x {n} a warp group, {text}": (n, in_a_row)
        for n, in_a_row, text in (
            (256, 0, "one accumulator"),
            (128, 0, "one accumulator"),
            (128, 1, "a second, 1 in a row"),
            (128, 2, "a second, 2 in a row"),
            (128, 4, "a second, 4 in a row"),
            (128, 8, "a second, 8 in a row"),
        )
    }
    calls, times = {}, {name: [] for name in kinds}
    for name, (n, in_a_row) in kinds.items():
        compiled = cute.compile(Promotion(n, in_a_row), tensor, options.steps, blocks)
        calls[name] = lambda f=compiled: f(tensor, options.steps, blocks)
        calls[name]()
        assert torch.isfinite(out).all() and (out != 0).any()
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
    rows, best = {}, None
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for name, (n, _) in kinds.items():
        work = 2 * 64 * GROUPS * n * K * options.steps * blocks
        rows[name] = work / statistics.median(times[name]) / 1e12
        best = best or rows[name]
        print(f"{name:<50} {rows[name]:7.1f} TFLOP/s, {rows[name] / best:.3f} of the first")
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
