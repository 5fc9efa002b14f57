"""The most that attention of 8 bits can reach on a Hopper GPU, by its mix of instructions alone.

    python bench/gpu/narrow_bound.py [--head 64 128 256] [--compile]

A step is what a warpgroup of `ops.hopper.attention` does for a tile of keys with elements of 8
bits: the same wgmma, and of each weight the same maximum, exponent, power, sum and conversion, of
each sum of values one product. But nobody waits for another: the softmax works on numbers of its
own, not on what wgmma computes, weights are not what it converts, and operands lie in shared
memory from the start. What is left out (barriers, TMA, masks, the first and last step of a tile of
queries) could only cost time. "products" and "softmax" are each alone. Medians of rounds in turns,
TFLOP/s of the two products, beside `ops.attention` of Float16 and of Float8E4M3FN with 16,384 keys.
Of each the clock and the power are told, as NVML has them in the middle of a second of calls: where
the power is at its limit, the clock falls, and time is that of the energy of a call.
With `--compile` nothing is run: it tells registers and spills of sm_90a.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import statistics
import sys
import time

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import OperandMajorMode, warpgroup
from basedsl_cute.ops.flash.attention import NARROW_CONFIGS
from basedsl_cute.ops.flash.softmax import powers
from basedsl_cute.ops.hopper.attention import (
    ROWS,
    multiply_scores,
    multiply_values,
    smem_layouts,
)
from basedsl_cute.utils import hopper_helpers as sm90

STEPS = 2048
KINDS = ("both", "products", "softmax")
ROUNDS = 9


def mixed(i, finite=0xB7B7B7B7):
    """Four numbers of 8 bits, each as good as any other: the power that products take depends on
    them. `finite` are the bits that may be set in finite ones.
    """
    some = (cute.Uint32(i) + 1) * cute.Uint32(2654435761)
    return (some ^ (some >> 15)) & cute.Uint32(finite)


@cute.kernel
def mix_kernel(
    out: cute.Tensor,
    steps: cute.Int32,
    factor: cute.Float32,
    mma_s: cute.Constexpr,
    mma_o: cute.Constexpr,
    head: cute.Constexpr,
    kind: cute.Constexpr,
    computed: cute.Constexpr,
    cfg: cute.Constexpr,
):
    (m, n), dtype, thread = cfg.tile, cute.Float8E4M3FN, arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    layouts = smem_layouts(dtype, head, head, cfg)
    sq, sk, sv = (smem.allocate_tensor(dtype, layout, 1024) for layout in layouts)
    for x in (sq, sk, sv):
        start = cute.recast_ptr(x.iterator, cute.make_swizzle(0, 4, 3), cute.Uint32)
        words = cute.make_tensor(start, cute.make_layout(cute.cosize(x.layout) // 4))
        for i in cute.range(thread, cute.size(words), 128 * cfg.groups, unroll=1):
            words[i] = mixed(i)
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    group = arch.make_warp_uniform(thread // 128)
    own_s, own_o = (x.get_slice(group * 128) for x in (mma_s, mma_o))
    rq = mma_s.make_fragment_A(own_s.partition_A(sq))
    rk = mma_s.make_fragment_B(own_s.partition_B(sk))
    rv = mma_o.make_fragment_B(own_o.partition_B(sv))
    acc = cute.make_rmem_tensor(mma_o.partition_shape_C((m, head)), cute.Float32)
    scores = cute.make_rmem_tensor(mma_s.partition_shape_C((m, n)), cute.Float32)
    weights = cute.make_rmem_tensor((cute.size(scores),), dtype)
    layout = cute.make_layout(((4, 2, 2), 1, n // 32), stride=((1, 4, 8), 0, 16))
    operand = cute.make_tensor(weights.iterator, layout)
    words = cute.recast_tensor(weights, cute.Uint32)
    for i in cute.range_constexpr(cute.size(words)):
        words[i] = mixed(thread * cute.size(words) + i) & cute.Uint32(0x3F3F3F3F)
    # Some of a thread's weights at a time, so that registers suffice.
    parts = 8 if head > 128 else 4
    blocks = n // 8 // parts
    part = cute.make_rmem_tensor(((2, 2, blocks),), cute.Float32)
    rows = cute.make_tensor(part.iterator, cute.make_layout((2, (2, blocks)), stride=(2, (1, 4))))
    part.fill(-1.0)
    made = cute.make_rmem_tensor((cute.size(part),), dtype)
    kept = cute.make_rmem_tensor((cute.size(part) // 4,), cute.Int32)
    kept.fill(0)
    largest = cute.make_rmem_tensor((2,), cute.Float32)
    total = cute.make_rmem_tensor((2,), cute.Float32)
    largest.fill(0.0)
    total.fill(0.0)
    acc.fill(0.0)
    scores.fill(0.0)
    stage = steps >> 31
    while steps > 0:
        if cute.const_expr(kind != "softmax"):
            warpgroup.wait_group(0)
            multiply_scores(mma_s, scores, rq, stage, rk, stage)
            multiply_values(mma_o, acc, operand, rv, stage)
        if cute.const_expr(kind != "products"):
            for number in cute.range_constexpr(parts):
                for r in cute.range_constexpr(2):
                    row = rows[r, None].load()
                    found = row.reduce(cute.ReductionOp.MAX, largest[r], 0)
                    if cute.const_expr(number == parts - 1):
                        found = arch.warp_reduction_max(found, threads_in_group=4)
                        total[r] = total[r] * cute.math.exp2(largest[r] - found, fastmath=True)
                    largest[r] = found
                    exponents = row * factor - found
                    if cute.const_expr(4 * number < parts * computed):
                        power = powers(exponents)
                    else:
                        power = cute.math.exp2(exponents, fastmath=True)
                    total[r] = power.reduce(cute.ReductionOp.ADD, total[r], 0)
                    rows[r, None].store(power)
                made.store(part.load().to(dtype).reshape(made.shape))
                # Something needs what is converted; the kernel permutes as many words.
                kept.store(kept.load() ^ cute.recast_tensor(made, cute.Int32).load())
            # As many products as sums of values of a thread.
            for i in cute.range_constexpr(head // 2):
                part[i % cute.size(part)] = part[i % cute.size(part)] * factor
        steps = steps - 1
    warpgroup.wait_group(0)
    value = total[0] + total[1]
    for x in (acc, scores, part):
        value = x.load().reduce(cute.ReductionOp.ADD, value, 0)
    value = value + cute.Float32(kept.load().reduce(cute.ReductionOp.ADD, 0, 0))
    out[arch.block_idx()[0] * (128 * cfg.groups) + thread] = value


@cute.jit
def mix(
    out: cute.Tensor,
    steps: cute.Int32,
    factor: cute.Float32,
    blocks: cute.Int32,
    head: cute.Constexpr,
    kind: cute.Constexpr,
    computed: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Int64,
):
    k, dtype = OperandMajorMode.K, cute.Float8E4M3FN
    kinds = (dtype, dtype, k, k, cute.Float32, (cfg.groups, 1, 1))
    mma_s = sm90.make_trivial_tiled_mma(*kinds, tiler_mn=(ROWS, cfg.tile[1]))
    mma_o = sm90.make_trivial_tiled_mma(
        *kinds, tiler_mn=(ROWS, head), a_source=warpgroup.OperandSource.RMEM
    )
    mix_kernel(out, steps, factor, mma_s, mma_o, head, kind, computed, cfg).launch(
        grid=(blocks, 1, 1),
        block=(128 * cfg.groups, 1, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--head", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--compile", action="store_true", help="for sm_90a, without a GPU")
    options = parser.parse_args()
    if options.compile:
        return compile_only(options.head)
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    print(torch.cuda.get_device_name())
    for head in options.head:
        measure(head)
    return 0


def variants(head):
    """The mixes that are run: by name, the kind and how many of four weights are computed."""
    found = {kind: (kind, 0) for kind in KINDS}
    return found | {"both, 1 of 4 computed": ("both", 1)}


def compile_only(heads):
    import numpy as np

    for head in heads:
        config = NARROW_CONFIGS[head][1]
        out = np.zeros(1 << 17, np.float32)
        for name, (kind, computed) in variants(head).items():
            code = cute.compile(
                *(mix, out, STEPS, 1.0, 132, head, kind, computed, config, 0),
                options="--gpu-arch sm_90a",
            )
            (kernel,) = code.resources.values()
            print(f"{head} {config.tile} {name}: {kernel.registers}, spills {kernel.spill_stores}")
    return 0


def measure(head):
    import torch

    from basedsl_cute.ops import attention

    config, (batches, length, heads) = NARROW_CONFIGS[head][1], (1, 16384, 16)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(processors * 128 * config.groups, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    contenders, work = {}, {}
    of_mix = 4 * processors * STEPS * config.tile[0] * config.tile[1] * head
    for name, (kind, computed) in variants(head).items():
        given = (out, STEPS, 1.0, processors, head, kind, computed, config, stream)
        contenders[name], work[name] = lambda given=given: mix(*given), of_mix
    q, k, v = (torch.randn(batches, length, heads, head, device="cuda").half() for _ in range(3))
    narrow = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
    contenders["fp16"] = lambda: attention(q, k, v)
    contenders["8 bits"] = lambda: attention(*narrow)
    work |= dict.fromkeys(("fp16", "8 bits"), 4 * batches * heads * length**2 * head)
    times = {name: [] for name in contenders}
    for once in contenders.values():
        once()
    for _ in range(ROUNDS):
        for name in random.sample(list(contenders), len(contenders)):
            times[name].append(seconds(contenders[name]))
    speed = {name: work[name] / statistics.median(times[name]) / 1e12 for name in contenders}
    shown = "  ".join(f"{name} {x:.0f} ({x / speed['fp16']:.3f})" for name, x in speed.items())
    print(f"heads of {head}, {config.tile}: {shown}", flush=True)
    for name, once in contenders.items():
        print(f"  {name}: {drawn(once)}", flush=True)


def drawn(once):
    """The clock and the power of the device during a second of calls, beside their limits."""
    import torch

    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    device, number = ctypes.c_void_p(), ctypes.c_uint()
    name = f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode()
    if nvml.nvmlDeviceGetHandleByUUID(name, ctypes.byref(device)):
        return "NVML does not know the device"

    def ask(call, *arguments):
        if getattr(nvml, call)(device, *arguments, ctypes.byref(number)):
            raise RuntimeError(f"{call} failed")
        return number.value

    sm, found, end = 1, [], time.monotonic() + 1
    while time.monotonic() < end:
        for _ in range(4):
            once()
        clock = ask("nvmlDeviceGetClockInfo", sm)
        found.append((clock, ask("nvmlDeviceGetPowerUsage") / 1000))
        torch.cuda.synchronize()
    clock, power = (statistics.median(x) for x in zip(*found[len(found) // 2 :], strict=True))
    most = ask("nvmlDeviceGetMaxClockInfo", sm)
    limit = ask("nvmlDeviceGetEnforcedPowerLimit") / 1000
    return f"{clock:.0f} of {most} MHz, {power:.0f} of {limit:.0f} W"


def seconds(once):
    """Device seconds of four calls, queued while the device is kept busy."""
    import torch

    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(2_000_000)
    start.record()
    for _ in range(4):
        once()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 4e3


if __name__ == "__main__":
    sys.exit(main())
