"""Clocks tell how wgmma is started on a Hopper GPU, and what other instructions take beside it.

    python bench/gpu/beside_wgmma.py [--compile]

"started": a warpgroup starts the products of an attention step of elements of 8 or 16 bits, those
of the scores and then those of the values, and waits for them: cycles from the beginning until each
was started, and done, with one warpgroup, and with two that begin together. Weights lie in
registers, as in `ops.hopper.attention`, or in shared memory.

"beside": one warpgroup multiplies, 64 x 192 x 128 at a time, while another has a loop of one
instruction, or of the two that it is made of, 32 of which are independent: cycles of each in a
warp, without the products and beside them. Numbers are those of block 0.
With `--compile` nothing is run: it tells registers and spills of sm_90a.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from narrow_bound import mixed

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import OperandMajorMode, warpgroup
from basedsl_cute.ops.flash.softmax import as_wgmma_operand, narrow_weights
from basedsl_cute.ops.hopper.attention import (
    multiply_scores,
    multiply_values,
    smem_layouts,
)
from basedsl_cute.ops.hopper.attention_config import ROWS, Config
from basedsl_cute.utils import hopper_helpers as sm90

FLOAT8, FLOAT16 = cute.Float8E4M3FN, cute.Float16
STEPS, CHAINS, UNROLLED = 200, 32, 8
PRODUCTS = 8  # for each turn of the other loop, so that they do not end before
# Heads' extent, type, tile, and if weights are in shared memory.
STARTS = [
    (128, FLOAT8, (64, 192), False),
    (128, FLOAT8, (64, 192), True),
    (128, FLOAT16, (64, 160), False),
    (256, FLOAT8, (64, 128), False),
    (128, FLOAT8, (128, 192), False),
    (128, FLOAT8, (128, 192), True),
    (128, FLOAT16, (128, 160), False),
    (256, FLOAT8, (128, 128), False),
]
INSTRUCTIONS = {  # PTX and the number of its operands
    "FFMA": ("fma.rn.f32 $0, $1, $2, $3;", 3),
    "FADD": ("add.f32 $0, $1, $2;", 2),
    "FMNMX": ("max.f32 $0, $1, $2;", 2),
    "VIMNMX3": (
        "{ .reg .s32 x, y, z; mov.b32 x, $1; mov.b32 y, $2; mov.b32 z, $3; max.s32 x, x, y; "
        "max.s32 x, x, z; mov.b32 $0, x; }",
        3,
    ),
    "MUFU.EX2": ("ex2.approx.ftz.f32 $0, $1;", 1),
    "F2FP to e4m3, PRMT": (
        "{ .reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, $1, $2; mov.b32 $0, {h, h}; }",
        2,
    ),
    "two MUFU.EX2.F16": (
        "{ .reg .b32 x; mov.b32 x, $1; ex2.approx.f16x2 x, x; mov.b32 $0, x; }",
        1,
    ),
}


def clock():
    return arch.inline_ptx("mov.u32 $0, %clock;", [], cute.Int32)


@cute.jit
def fill(x, thread, threads: cute.Constexpr, bits: cute.Constexpr, width: cute.Constexpr):
    """Fill shared memory with finite numbers."""
    start = cute.recast_ptr(x.iterator, cute.make_swizzle(0, 4, 3), cute.Uint32)
    words = cute.make_tensor(start, cute.make_layout(cute.cosize(x.layout) * width // 32))
    for i in cute.range(thread, cute.size(words), threads, unroll=1):
        words[i] = mixed(i, bits)


@cute.kernel
def start_kernel(
    out: cute.Tensor,
    steps: cute.Int32,
    mma_s: cute.Constexpr,
    mma_o: cute.Constexpr,
    head: cute.Constexpr,
    dtype: cute.Constexpr,
    cfg: cute.Constexpr,
    shared: cute.Constexpr,
):
    (m, n), thread = cfg.tile, arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    layouts = list(smem_layouts(dtype, head, head, cfg))
    layouts.append(sm90.make_smem_layout_a(sm90.LayoutEnum.ROW_MAJOR, (m, head, n), dtype, 1))
    staged = [smem.allocate_tensor(dtype, layout, 1024) for layout in layouts]
    bits = 0xB7B7B7B7 if dtype.width == 8 else 0xBBFFBBFF
    for x in staged:
        fill(x, thread, 128 * cfg.groups, bits, dtype.width)
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    sq, sk, sv, sw = staged
    number = arch.make_warp_uniform(thread // 128)
    own_s, own_o = (x.get_slice(number * 128) for x in (mma_s, mma_o))
    rq = mma_s.make_fragment_A(own_s.partition_A(sq))
    rk = mma_s.make_fragment_B(own_s.partition_B(sk))
    rv = mma_o.make_fragment_B(own_o.partition_B(sv))
    acc = cute.make_rmem_tensor(mma_o.partition_shape_C((m, head)), cute.Float32)
    scores = cute.make_rmem_tensor(mma_s.partition_shape_C((m, n)), cute.Float32)
    if cute.const_expr(shared):
        operand = mma_o.make_fragment_A(own_o.partition_A(sw))[None, None, None, 0]
    else:
        if cute.const_expr(dtype.width == 8):
            _, weights, operand = narrow_weights(scores, dtype)
        else:
            weights = cute.make_rmem_tensor(scores.layout, dtype)
            operand = as_wgmma_operand(weights)
        words = cute.recast_tensor(weights, cute.Uint32)
        for i in cute.range_constexpr(cute.size(words)):
            words[i] = mixed(thread * cute.size(words) + i, bits & 0x7FFF7F7F)
    acc.fill(0.0)
    stage = steps >> 31
    times = cute.make_rmem_tensor((5,), cute.Int32)
    times.fill(0)
    while steps > 0:
        steps = steps - 1
        arch.sync_threads()
        times[0] = clock()
        multiply_scores(mma_s, scores, rq, stage, rk, stage)
        times[1] = clock()
        multiply_values(mma_o, acc, operand, rv, stage)
        times[2] = clock()
        warpgroup.wait_group(1)
        times[3] = clock()
        warpgroup.wait_group(0)
        times[4] = clock()
    value = cute.Float32(0.0)
    for x in (acc, scores):
        value = x.load().reduce(cute.ReductionOp.ADD, value, 0)
    if arch.block_idx()[0] == 0 and thread % 128 == 0:
        for i in cute.range_constexpr(4):
            out[number * 8 + i] = cute.Float32(times[i + 1] - times[0])
        out[number * 8 + 7] = value


@cute.jit
def start(
    out: cute.Tensor,
    steps: cute.Int32,
    blocks: cute.Int32,
    head: cute.Constexpr,
    dtype: cute.Constexpr,
    tile: cute.Constexpr,
    shared: cute.Constexpr,
    stream: cute.Int64,
):
    cfg, k = Config(tile, 1), OperandMajorMode.K
    of_values = k if dtype.width == 8 else OperandMajorMode.MN
    kinds, shape = (dtype, dtype, k), (cute.Float32, (cfg.groups, 1, 1))
    mma_s = sm90.make_trivial_tiled_mma(*kinds, k, *shape, tiler_mn=(ROWS, tile[1]))
    source = warpgroup.OperandSource.SMEM if shared else warpgroup.OperandSource.RMEM
    mma_o = sm90.make_trivial_tiled_mma(
        *(*kinds, of_values, *shape), tiler_mn=(ROWS, head), a_source=source
    )
    start_kernel(out, steps, mma_s, mma_o, head, dtype, cfg, shared).launch(
        grid=(blocks, 1, 1),
        block=(128 * cfg.groups, 1, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
    )


@cute.kernel
def beside_kernel(
    out: cute.Tensor,
    steps: cute.Int32,
    mma: cute.Constexpr,
    name: cute.Constexpr,
    multiplies: cute.Constexpr,
    cfg: cute.Constexpr,
):
    thread = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    layouts = smem_layouts(FLOAT8, 128, 128, cfg)
    staged = [smem.allocate_tensor(FLOAT8, layout, 1024) for layout in layouts[:2]]
    for x in staged:
        fill(x, thread, 256, 0xB7B7B7B7, 8)
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    number = arch.make_warp_uniform(thread // 128)
    stage = steps >> 31
    value = cute.Float32(0.0)
    begin = clock()
    if number == 0:
        if cute.const_expr(multiplies):
            rq = mma.make_fragment_A(mma.get_slice(0).partition_A(staged[0]))
            rk = mma.make_fragment_B(mma.get_slice(0).partition_B(staged[1]))
            scores = cute.make_rmem_tensor(mma.partition_shape_C(cfg.tile), cute.Float32)
            scores.fill(0.0)
            for _ in cute.range(steps * PRODUCTS, unroll=1):
                multiply_scores(mma, scores, rq, stage, rk, stage)
                warpgroup.wait_group(0)
            value = scores.load().reduce(cute.ReductionOp.ADD, value, 0)
    else:
        text, count = INSTRUCTIONS[name]
        held = cute.make_rmem_tensor((CHAINS,), cute.Float32)
        for i in cute.range_constexpr(CHAINS):
            held[i] = cute.Float32(thread) * (0.001 + i)
        others = (cute.Float32(thread) * 0.01, cute.Float32(thread) * 0.02)
        for _ in cute.range(steps, unroll=1):
            for _ in cute.range_constexpr(UNROLLED):
                for i in cute.range_constexpr(CHAINS):
                    held[i] = arch.inline_ptx(text, [held[i], *others][:count], cute.Float32)
        value = held.load().reduce(cute.ReductionOp.ADD, value, 0)
    end = clock()
    if arch.block_idx()[0] == 0 and thread % 128 == 0:
        out[number] = cute.Float32(end - begin)
    out[thread + 8] = value


@cute.jit
def beside(
    out: cute.Tensor,
    steps: cute.Int32,
    blocks: cute.Int32,
    name: cute.Constexpr,
    multiplies: cute.Constexpr,
    stream: cute.Int64,
):
    cfg, k = Config((64, 192), 1), OperandMajorMode.K
    mma = sm90.make_trivial_tiled_mma(
        *(FLOAT8, FLOAT8, k, k, cute.Float32, (1, 1, 1)), tiler_mn=(ROWS, 192)
    )
    beside_kernel(out, steps, mma, name, multiplies, cfg).launch(
        grid=(blocks, 1, 1),
        block=(256, 1, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="for sm_90a, without a GPU")
    if parser.parse_args().compile:
        return compile_only()
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    print(torch.cuda.get_device_name())
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(1024, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream

    def told(call, *static):
        for _ in range(2):
            call(out, STEPS, processors, *static, stream)
        return out.tolist()

    for head, dtype, tile, shared in STARTS:
        found = told(start, head, dtype, tile, shared)
        where = "shared memory" if shared else "registers"
        for group in range(tile[0] // ROWS):
            names = ("scores started", "values started", "scores done", "values done")
            each = zip(names, found[8 * group :], strict=False)
            shown = ", ".join(f"{name} {x:.0f}" for name, x in each)
            print(f"heads of {head}, {dtype.__name__}, {tile}, {where}: {shown}", flush=True)
    for name in INSTRUCTIONS:
        alone, both = (
            told(beside, name, multiplies)[1] / STEPS / UNROLLED / CHAINS
            for multiplies in (False, True)
        )
        print(f"{name}: {alone:.2f} cycles, beside wgmma {both:.2f}", flush=True)
    return 0


def compile_only():
    import numpy as np

    out = np.zeros(1024, np.float32)
    works = [(start, case) for case in STARTS]
    works += [(beside, (name, multiplies)) for name in INSTRUCTIONS for multiplies in (False, True)]
    for call, static in works:
        code = cute.compile(call, out, STEPS, 132, *static, 0, options="--gpu-arch sm_90a")
        (kernel,) = code.resources.values()
        print(f"{static}: {kernel.registers}, spills {kernel.spill_stores}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
