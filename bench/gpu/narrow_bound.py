"""The most that attention of 8 bits reaches on a Hopper GPU by steps that depend on each other.

    python bench/gpu/narrow_bound.py [--head 64 128 256] [--only TEXT ...] [--change FIELDS ...]
                                     [--rows [TEXT ...]] [--compile]

A step is what a warpgroup of `ops.hopper.attention` does for a tile of keys, by its own functions:
it starts the products of the next scores and those of this tile's weights with its values, then
takes each row's largest score, makes weights, sums them, and converts them for the step after. So
each waits for what it must wait for in any such kernel. But operands lie in shared memory from the
start, nothing is masked, and a block has one tile of queries without end: no TMA, no barriers but
those of turns, no first and last step. "fp16" is a step of 16 bits, made alike.

With `--rows`, blocks have the tasks that they have in rows of `bench/gpu/attention.py` (those whose
names contain a TEXT), as evenly shared as whole tasks can be: of each the first scores, as many
steps as tiles of keys, and at the end the last values, whose sums are scaled and rounded. Nothing
is loaded, masked or written. Each row tells that and a copy of as many bytes as the turn of the
values moves, together, beside `ops.attention` of 16 bits and of 8 bits with those lengths.

"exact" has bases of exponents that are the largest scores so far, and sums by additions. "without"
tells what of that is left out, in turn, whatever the results are then: what it costs. With "sums
checked" no maxima are taken: bases stay until a thread's sum of weights is above what the type has,
as in a kernel that would allow that the largest weight is rounded. The operands of a step are those
of the step before, so that bases that follow from afar never rise.

Medians of rounds in turns, TFLOP/s of the two products, and of that the ratio to "fp16" and to
`ops.attention` of Float16 with 16,384 keys, which is told with that of 8 bits, with the clock and
the power that NVML has in the middle of a second of calls: where power is at its limit, the clock
falls, and time is that of the energy of a call. `--change "late=2, tile=(192, 96)"` adds a kernel
whose configuration is the chosen one but for those fields. With `--compile` nothing is run: it
tells registers and spills of sm_90a.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import random
import statistics
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import OperandMajorMode, warpgroup
from basedsl_cute.ops.flash.attention import HOPPER_CONFIGS, NARROW_BY_PRODUCTS
from basedsl_cute.ops.flash.softmax import (
    Powers,
    as_rows,
    as_wgmma_operand,
    narrow_weights,
    powers,
)
from basedsl_cute.ops.hopper.attention import (
    give_turn,
    multiply_scores,
    multiply_values,
    rescale,
    rescale_where_risen,
    smem_layouts,
    softmax_of,
    take_turn,
)
from basedsl_cute.ops.hopper.attention_config import ROWS, Config
from basedsl_cute.ops.hopper.attention_sums import TileSums, allocate_ones, write_ones
from basedsl_cute.ops.hopper.attention_weights import parts_of, store_weights
from basedsl_cute.ops.hopper.gemm import pin_in_registers
from basedsl_cute.utils import hopper_helpers as sm90

STEPS, MOST_GROUPS, MOST_TASKS = 1024, 3, 64
ROUNDS = 9
SCALE = 0.3  # of scores: weights differ, as the power of products depends on it
MOST = 448.0  # of Float8E4M3FN
PARTS = ("max", "exp", "sum", "scale", "convert")
ROWS_OF_TABLES = [(4, 4096, 16, False), (4, 4096, 16, True), (1, 16384, 16, False)]
ROWS_OF_TABLES.append((1, 16384, 16, True))  # batches, length, heads, causal


@dataclass(frozen=True)
class Plan:
    """A kernel: `config` is that of the attention, `dtype` of its operands. `without` are those of
    PARTS that are left out, `checked` says that sums of weights are checked instead of maxima.
    """

    dtype: Any
    config: Config
    without: tuple[str, ...] = ()
    checked: bool = False


def plans(head, changes=(), causal=False):
    """The kernels that are run, by name."""
    wide, narrow = HOPPER_CONFIGS[head][1], NARROW_BY_PRODUCTS[head][causal]
    wide, narrow = (replace(x, stages=1, query_stages=1) for x in (wide, narrow))
    units = replace(narrow, in_halves=0, in_lines=0)  # all powers by the unit for exponentials
    exact = replace(units, slack=(), by_products=False)
    lazy = replace(narrow, slack=((0, 1.0),), between=False)
    configs = {
        "as chosen": narrow,
        "other order of turns": replace(narrow, turns=not narrow.turns, overlaps=False),
        "bases that follow from afar": lazy,
        "maxima of each tile": replace(units, slack=()),
        "sums by additions": replace(units, by_products=False),
        "exact": exact,
        "exact, sums scaled otherwise": replace(exact, between=not exact.between),
        "exact, largest scores otherwise": replace(exact, by_bits=not exact.by_bits),
    }
    for late in (0, 2, 6):
        configs[f"late {late}"] = replace(narrow, late=late)
    for computed in (1, 2):
        configs[f"computed {computed}"] = replace(units, computed=computed)
    for eighths in (0, 4, 8):
        configs[f"in halves {eighths}"] = replace(units, in_halves=eighths)
    if head == 128:
        for tile in ((128, 128), (128, 160), (128, 192), (128, 224)):
            own = replace(narrow, tile=tile, turns=True, overlaps=False)
            configs[f"tile {tile}, turns"] = own
            configs[f"exact, tile {tile}"] = replace(exact, tile=tile)
    for fields in changes:
        configs[fields] = replace(narrow, **eval(f"dict({fields})"))
    found = {"fp16": Plan(cute.Float16, wide)}
    found |= {name: Plan(cute.Float8E4M3FN, config) for name, config in configs.items()}
    without = found["exact"]
    found["exact, sums checked"] = replace(without, checked=True)
    found |= {f"exact, without {part}": replace(without, without=(part,)) for part in PARTS}
    found["products alone"] = replace(without, without=PARTS)
    return found


def mixed(i, finite=0xB7B7B7B7):
    """Four numbers of 8 bits, each as good as any other: the power that products take depends on
    them. `finite` are the bits that may be set in finite ones.
    """
    some = (cute.Uint32(i) + 1) * cute.Uint32(2654435761)
    return (some ^ (some >> 15)) & cute.Uint32(finite)


@cute.kernel
def chain_kernel(
    out: cute.Tensor,
    tasks: cute.Tensor,
    factor: cute.Float32,
    mma_s: cute.Constexpr,
    mma_o: cute.Constexpr,
    head: cute.Constexpr,
    plan: cute.Constexpr,
):
    cfg, dtype, thread = plan.config, plan.dtype, arch.thread_idx()[0]
    m, n = cfg.tile
    smem = cute.utils.SmemAllocator()
    layouts = smem_layouts(dtype, head, head, cfg)
    sq, sk, sv = (smem.allocate_tensor(dtype, layout, 1024) for layout in layouts)
    for x in (sq, sk, sv):
        start = cute.recast_ptr(x.iterator, cute.make_swizzle(0, 4, 3), cute.Uint32)
        words = cute.make_tensor(start, cute.make_layout(cute.cosize(x.layout) * dtype.width // 32))
        for i in cute.range(thread, cute.size(words), 128 * cfg.groups, unroll=1):
            words[i] = mixed(i, 0xB7B7B7B7 if dtype.width == 8 else 0xBBFFBBFF)
    ones: Any = None
    if cute.const_expr(cfg.by_products):
        ones = allocate_ones(smem, dtype, cfg)
        write_ones(ones, thread)
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    group = arch.make_warp_uniform(thread // 128) + 1
    own_s, own_o = (x.get_slice((group - 1) * 128) for x in (mma_s, mma_o))
    rq = mma_s.make_fragment_A(own_s.partition_A(sq))
    rk = mma_s.make_fragment_B(own_s.partition_B(sk))
    rv = mma_o.make_fragment_B(own_o.partition_B(sv))
    acc = cute.make_rmem_tensor(mma_o.partition_shape_C((m, head)), cute.Float32)
    scores = cute.make_rmem_tensor(mma_s.partition_shape_C((m, n)), cute.Float32)
    if cute.const_expr(dtype.width == 8):
        ordered, weights, operand = narrow_weights(scores, dtype)
    else:
        ordered, weights = scores, cute.make_rmem_tensor(scores.layout, dtype)
        operand = as_wgmma_operand(weights)
    sums, by_row, parts = as_rows(acc), as_rows(scores), parts_of(scores, cfg)
    tile_sums: Any = None
    if cute.const_expr(cfg.by_products):
        tile_sums = TileSums(ones, (group - 1) * 128, cfg)
    scales = cute.make_rmem_tensor((2,), cute.Float32)
    softmax = softmax_of(2, factor, dtype, cfg)
    is_scaled = "scale" not in plan.without and not plan.checked
    number, kept = cute.Int32(0), cute.Int32(0)
    block = arch.block_idx()[0]
    steps = arch.make_warp_uniform(tasks[block, group - 1, 0])
    stage = steps >> 31
    if group == cfg.groups:
        give_turn(group, steps > 0, cfg)
    if cute.const_expr(cfg.overlaps):
        multiply_scores(mma_s, scores, rq, stage, rk, stage)
        warpgroup.wait_group(0)
    while steps > 0:
        number = number + 1
        following = arch.make_warp_uniform(tasks[block, group - 1, number])
        if cute.const_expr(not cfg.overlaps):
            take_turn(group, cfg)
            multiply_scores(mma_s, scores, rq, stage, rk, stage)
        steps = steps - 1
        give_turn(group, steps + following > 0, cfg)
        acc.fill(0.0)
        scales.fill(1.0)
        softmax.begin()
        warpgroup.wait_group(0)
        softmax.update(by_row, tile_sums is None)
        weights.store(ordered.load().to(dtype).reshape(weights.shape))
        while steps > 0:
            steps = steps - 1
            take_turn(group, cfg)
            multiply_scores(mma_s, scores, rq, stage, rk, stage)
            if cute.const_expr(is_scaled and cfg.between):
                rescale(sums, scales)
            multiply_values(mma_o, acc, operand, rv, stage, tile_sums)
            give_turn(group, steps + following > 0, cfg)
            warpgroup.wait_group(1)
            before = [softmax.total[r] for r in range(2)]
            if cute.const_expr("max" in plan.without or plan.checked):
                exponents = [(factor, softmax.largest[r] * factor - 8) for r in range(2)]
                if cute.const_expr(plan.checked):
                    softmax.total.fill(0.0)
            else:
                factors, exponents = softmax.rise(by_row)
                for r in range(2):
                    scales[r] = factors[r]
            for part, kind in parts[0]:
                weigh(plan, softmax, part, exponents, kind, tile_sums is None)
            if cute.const_expr(cfg.pinned):
                pin_in_registers(softmax.total)
            # Never false, but a branch: ptxas moves a wait up to the beginning of its basic block.
            if steps >= 0:
                arch.sync_warp()
            warpgroup.wait_group(0)
            if cute.const_expr(cfg.by_products):
                tile_sums.add(softmax.total, scales)
            if cute.const_expr(is_scaled and cfg.slack):
                rescale_where_risen(softmax, sums, scales)
            elif cute.const_expr(is_scaled and not cfg.between):
                rescale(sums, scales)
            for part, kind in parts[1]:
                weigh(plan, softmax, part, exponents, kind, tile_sums is None)
            if cute.const_expr(plan.checked):
                check(softmax, by_row, sums, before)
            if cute.const_expr("convert" not in plan.without):
                store_weights(weights, ordered, cfg)
        if cute.const_expr(is_scaled and cfg.between):
            rescale(sums, scales)
        multiply_values(mma_o, acc, operand, rv, stage, tile_sums)
        if cute.const_expr(cfg.overlaps):
            multiply_scores(mma_s, scores, rq, stage, rk, stage)
        warpgroup.wait_group(1 if cfg.overlaps else 0)
        if cute.const_expr(cfg.by_products):
            scales.fill(1.0)
            tile_sums.add(softmax.total, scales)
        for r in cute.range_constexpr(2):
            inverse, _ = softmax.finish(r)
            result = cute.make_rmem_tensor((head // 4,), cute.BFloat16)
            result.store((sums[r, None].load() * inverse).to(cute.BFloat16).reshape(result.shape))
            words = cute.recast_tensor(result, cute.Int32)
            for i in cute.range_constexpr(cute.size(words)):
                kept = kept * 3 + words[i]
        steps = following
        if cute.const_expr(cfg.overlaps):
            warpgroup.wait_group(0)
    for i in cute.range_constexpr(cute.size(scores)):
        kept = kept + cute.Int32(scores[i])  # so that their products are not left out
    out[block * (128 * cfg.groups) + thread] = kept


def weigh(plan, softmax, part, exponents, kind, is_summed):
    """Make scores into weights, and add them to the sums, but for what is left out."""
    for r, (factor, base) in enumerate(exponents):
        x = part[r, None].load() * factor - base
        if "exp" not in plan.without and not kind.converts:
            is_computed = kind is Powers.PRODUCTS
            x = powers(x) if is_computed else cute.math.exp2(x, fastmath=True)
        if is_summed and "sum" not in plan.without:
            softmax.total[r] = x.reduce(cute.ReductionOp.ADD, softmax.total[r], 0)
        part[r, None].store(x)


@cute.jit
def check(softmax, by_row, sums, before):
    """Scale weights and sums, and raise the base, where a weight may be too large; add the sums of
    the tile to those `before`.
    """
    if arch.vote_any_sync(arch.fmax(softmax.total[0], softmax.total[1]) > MOST):
        for r in range(2):
            most = arch.warp_reduction_max(softmax.total[r], threads_in_group=4)
            rise = cute.math.log2(arch.fmax(most, 1.0), fastmath=True)
            scale = cute.math.exp2(-rise, fastmath=True)
            softmax.largest[r] = softmax.largest[r] + rise * arch.rcp_approx(softmax.factor)
            before[r] = before[r] * scale
            softmax.total[r] = softmax.total[r] * scale
            by_row[r, None].store(by_row[r, None].load() * scale)
            sums[r, None].store(sums[r, None].load() * scale)
    for r in range(2):
        softmax.total[r] = softmax.total[r] + before[r]


@cute.jit
def chain(
    out: cute.Tensor,
    tasks: cute.Tensor,
    factor: cute.Float32,
    blocks: cute.Int32,
    head: cute.Constexpr,
    plan: cute.Constexpr,
    stream: cute.Int64,
):
    k, dtype, cfg = OperandMajorMode.K, plan.dtype, plan.config
    of_values = k if dtype.width == 8 else OperandMajorMode.MN
    kinds, shape = (dtype, dtype, k), (cute.Float32, (cfg.groups, 1, 1))
    mma_s = sm90.make_trivial_tiled_mma(*kinds, k, *shape, tiler_mn=(ROWS, cfg.tile[1]))
    mma_o = sm90.make_trivial_tiled_mma(
        *(*kinds, of_values, *shape),
        tiler_mn=(ROWS, head),
        a_source=warpgroup.OperandSource.RMEM,
    )
    chain_kernel(out, tasks, factor, mma_s, mma_o, head, plan).launch(
        grid=(blocks, 1, 1),
        block=(128 * cfg.groups, 1, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--head", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--only", nargs="*", help="plans whose names contain one of these")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="0: compiled and called once")
    parser.add_argument("--rows", nargs="*", metavar="TEXT", help="rows of tables, or some")
    parser.add_argument("--change", nargs="*", default=[], metavar="FIELDS")
    parser.add_argument("--compile", action="store_true", help="for sm_90a, without a GPU")
    options = parser.parse_args()
    if not options.compile:
        import torch

        if not torch.cuda.is_available():
            print("no CUDA device here")
            return 0
        print(torch.cuda.get_device_name())
    for head in options.head:
        if options.rows is not None and not options.compile:
            for row in ROWS_OF_TABLES:
                if any(text in name_of(row) for text in options.rows or [""]):
                    found = asked(head, options, row[3])
                    del found["fp16"]
                    measure_row(head, found, row, options.rounds)
        elif options.compile:
            compile_only(head, asked(head, options))
        else:
            measure(head, asked(head, options), options.rounds)
    return 0


def asked(head, options, causal=False):
    """The kernels that are asked for, and "fp16"."""
    kept = ["fp16", *options.change]
    return {
        name: plan
        for name, plan in plans(head, options.change, causal).items()
        if name in kept or not options.only or any(text in name for text in options.only)
    }


def name_of(row):
    batches, length, heads, causal = row
    return f"{batches}x{length}x{heads}{' causal' if causal else ''}"


def compile_only(head, found):
    import numpy as np

    out, tasks = np.zeros(1 << 17, np.int32), np.zeros((132, MOST_GROUPS, 16), np.int32)
    for name, plan in found.items():
        code = cute.compile(
            *(chain, out, tasks, SCALE, 132, head, plan, 0), options="--gpu-arch sm_90a"
        )
        (kernel,) = code.resources.values()
        told = f"{kernel.registers}, spills {kernel.spill_stores}"
        print(f"{head} {plan.config.tile} {name}: {told}", flush=True)


def measure(head, found, rounds):
    import torch

    from basedsl_cute.ops import attention

    processors = torch.cuda.get_device_properties(0).multi_processor_count
    contenders, work = {}, {}
    tasks = torch.zeros(processors, MOST_GROUPS, MOST_TASKS, dtype=torch.int32, device="cuda")
    tasks[:, :, 0] = STEPS
    for name, plan in found.items():
        contenders[name] = chained(plan, tasks, head)
        m, n = plan.config.tile
        work[name] = 4 * processors * STEPS * m * n * head
    batches, length, heads = 1, 16384, 16
    q, k, v = (torch.randn(batches, length, heads, head, device="cuda").half() for _ in range(3))
    narrow = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
    contenders["attention, fp16"] = lambda: attention(q, k, v)
    contenders["attention, 8 bits"] = lambda: attention(*narrow)
    for name in ("attention, fp16", "attention, 8 bits"):
        work[name] = 4 * batches * heads * length**2 * head
    times = medians(contenders, rounds)
    if not rounds:
        return
    speed = {name: work[name] / x / 1e12 for name, x in times.items()}
    for name, x in sorted(speed.items(), key=lambda item: -item[1]):
        tile = f" {found[name].config.tile}" if name in found else ""
        of = f"{x / speed['fp16']:.3f}, {x / speed['attention, fp16']:.3f}"
        print(f"heads of {head}{tile} {name}: {x:.0f} ({of})", flush=True)
    shown = ("fp16", "as chosen", "exact", "attention, fp16", "attention, 8 bits")
    for name in shown:
        if name in contenders:
            print(f"  {name}: {drawn(contenders[name])}", flush=True)


def measure_row(head, found, row, rounds):
    """Measure a row of the tables: chained steps of its tasks, beside `ops.attention`."""
    import torch

    from basedsl_cute.ops import attention

    batches, length, heads, causal = row
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    contenders = {}
    for name, plan in found.items():
        tasks = tasks_of(row, plan.config, processors)
        tasks = torch.tensor(tasks, dtype=torch.int32, device="cuda")
        contenders[name] = chained(plan, tasks, head)
    shape = (batches, length, heads, head)
    q, k, v = (torch.randn(*shape, device="cuda").half() for _ in range(3))
    narrow = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
    contenders["attention, fp16"] = lambda: attention(q, k, v, causal=causal)
    contenders["attention, 8 bits"] = lambda: attention(*narrow, causal=causal)
    values, turned = narrow[2].view(torch.uint8), torch.empty(shape, dtype=torch.uint8).cuda()
    contenders["values copied"] = lambda: turned.copy_(values)
    times = medians(contenders, rounds)
    if not rounds:
        return
    copied = times.pop("values copied")
    print(f"{name_of(row)}x{head}: values copied in {copied * 1e6:.1f} us", flush=True)
    for name in found.keys() & times.keys():
        times[name] += copied
    work = 4 * batches * heads * length**2 * head / (2 if causal else 1)
    for name, x in sorted(times.items(), key=lambda item: item[1]):
        tile = f" {found[name].config.tile}" if name in found else ""
        ratio = times["attention, fp16"] / x
        print(
            f"{name_of(row)}x{head}{tile} {name}: {work / x / 1e12:.0f} ({ratio:.3f})", flush=True
        )


def tasks_of(row, cfg, processors):
    """The steps of each task of each block and warpgroup, the tasks shared as evenly as by the
    longest first: (blocks, MOST_GROUPS, MOST_TASKS), with zeros at the end.
    """
    batches, length, heads, causal = row
    (m, n), tasks = cfg.tile, []
    for first in range(-(-length % m) if cfg.from_end else 0, length, m):
        keys = []
        for x in range(first, first + m, ROWS if cfg.by_groups else m):
            end = x + (ROWS if cfg.by_groups else m)
            seen = min(end, length) if causal else length
            keys.append(seen if x < length and end > 0 else 0)
        tasks.append([max(-(-seen // n), 1) for seen in keys])
    shares = [(0, i, []) for i in range(processors)]
    for each in sorted(tasks * (batches * heads), key=sum, reverse=True):
        load, i, own = heapq.heappop(shares)
        heapq.heappush(shares, (load + sum(each) / len(each) + 1, i, [*own, each]))
    found = []
    for _, _, own in shares:
        groups = [[each[min(g, len(each) - 1)] for each in own] for g in range(MOST_GROUPS)]
        found.append([steps + [0] * (MOST_TASKS - len(steps)) for steps in groups])
    return found


def chained(plan, tasks, head):
    """A call of a plan's kernel with tasks of each multiprocessor."""
    import torch

    blocks = tasks.shape[0]
    out = torch.zeros(blocks * 384, dtype=torch.int32, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    return lambda: chain(out, tasks, SCALE, blocks, head, plan, stream)


def medians(contenders, rounds):
    """Seconds of a call of each, in turns, after one call of each."""
    times = {}
    for name, once in contenders.items():
        try:
            once()
        except Exception as error:  # the others go on
            print(f"{name} FAILED: {str(error)[:300]}", flush=True)
            continue
        times[name] = []
    for _ in range(rounds):
        for name in random.sample(list(times), len(times)):
            times[name].append(seconds(contenders[name]))
    return {name: statistics.median(found) for name, found in times.items() if found}


def drawn(once, duration=1.0):
    """The clock and the power of the device during seconds of calls, beside their limits."""
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

    sm, found, end = 1, [], time.monotonic() + duration
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
