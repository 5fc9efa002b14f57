"""The most that attention by mma.sync reaches when its instructions wait for each other as those of
any such kernel must, with heads of 128 and several tiles.

    python bench/gpu/attention_chained.py [--config CONFIG ...] [--only TEXT ...] [--compile]

A kind is a walk of `ops.attention` by mma.sync over endless tiles: the same mma.sync,
ldmatrix, cp.async and arithmetic. Weights are made of what the first product computed, the second
one multiplies these weights, and the largest score of a row that a thread has is known before its
weights. Nothing else is waited for: there are no waits for copies, no barriers, no masks, no
exchange between threads, no scaling of results, no beginning and no end. What is left out could
only cost time, so that no kernel with this tile, this layout of shared memory, this order and this
compiler's schedule is faster; the best of all kinds is the bound that `ops.attention` is held
against. Beside it, in turns: the mix of `attention_bound.py`, in which nothing waits for anything,
with 4 to 16 chains of weights, `tests/cute/programs/attention.py`, `ops.attention` with each CONFIG
("ampere.Config((128, 48), 4, slack=8)"), and PyTorch's flash attention: 4 x 4096 x 16 x 128, and
causal ones counted half. Then the clock and the power of each, and of the best kind. `--compile`
tells registers and spills, without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import warp
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.ampere.attention_key_walk import KeyWalk
from basedsl_cute.ops.ampere.attention_operands import AttentionOperands
from basedsl_cute.ops.ampere.attention_ring_walk import RingWalk, make_barriers
from basedsl_cute.ops.ampere.attention_rows import RowCopier
from basedsl_cute.ops.flash.softmax import LazySoftmax

D = 128
TILES = 512  # of keys, that a block walks over
PLACES = 64  # of tiles in memory
ROUNDS = 7
BUSY = 30_000_000  # cycles of the device, in which the host gets ahead of four calls
PROGRAM = Path(__file__).resolve().parents[2] / "tests" / "cute" / "programs" / "attention.py"


@dataclass(frozen=True)
class Kind:
    """The configuration of a walk, and the number of blocks that share a multiprocessor."""

    cfg: ampere.Config
    blocks: int


def kinds():
    """All kinds by name."""
    found = {}
    for warps, rows, keys, stages, blocks in (
        (4, 32, 32, 1, 2),
        (4, 32, 48, 1, 2),
        (4, 32, 64, 1, 2),
        (4, 32, 64, 2, 2),
        (8, 32, 64, 1, 1),
        (8, 32, 64, 2, 1),
        (8, 32, 64, 3, 1),
        (4, 16, 64, 1, 3),
        (8, 16, 64, 1, 1),
    ):
        cfg = ampere.Config((warps * rows, keys), warps, slack=8, stages=stages)
        name = f"chained, {warps} warps of {rows}, {keys} keys, {stages} stages"
        found[name] = Kind(cfg, blocks)
    return found


class EndlessWalk(KeyWalk):
    """A walk that waits for no copy and no thread."""

    def await_copies(self):
        pass


class EndlessRingWalk(RingWalk):
    """A walk through a ring of stages that waits for no copy and no thread."""

    def await_phase(self, barrier, phase):
        pass


class ChainedSoftmax(LazySoftmax):
    """Bases that are a thread's own largest scores, of which nothing is told to anybody."""

    def raise_bases(self, own):
        for r in range(cute.size(own)):
            self.bases[r] = arch.fmax(self.bases[r], own[r] * self.factors[r])


@cute.kernel
def chained_kernel(
    x: cute.Tensor, out: cute.Tensor, tiles: cute.Int32, factor: cute.Float32, cfg: cute.Constexpr
):
    (m, n), dtype = cfg.tile, cute.Float16
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    smem = cute.utils.SmemAllocator()
    layouts = ampere.smem_layouts(cfg, dtype, D, D)
    sq, sk, sv = (smem.allocate_tensor(dtype, layout, 1024) for layout in layouts)
    mma = cute.make_tiled_mma(
        warp.MmaF16BF16Op(dtype, cute.Float32, (16, 8, 16)),
        (cfg.warps, 1, 1),
        permutation_mnk=(ampere.rows_of_warps(cfg), 16, 16),
    )
    operands = AttentionOperands(mma, cfg.tile, (D, D), (sq, sk, sv), thread)
    copy_q, copy_k = (RowCopier(s, cfg, thread) for s in (sq, sk))
    copy_v = RowCopier(sv, cfg, thread, by_column=True)
    rows = cute.Int32(x.shape[0])

    def place_of(number):
        return (number + block * 5) % PLACES * n

    def keys(number, stage):
        copy_k.copy_rows(x, place_of(number), rows, stage)

    def values(number, stage):
        copy_v.copy_rows(x, place_of(number), rows, stage)

    copy_q.copy_rows(x, cute.Int32(0), rows)
    for stage in range(cfg.stages):
        keys(cute.Int32(stage), stage)
        values(cute.Int32(stage), stage)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()

    acc = mma.make_fragment_C(mma.partition_shape_C((m, D)))
    acc.fill(0.0)
    totals = ampere.Totals(mma, cfg, dtype)
    softmax = ChainedSoftmax(cute.size(totals.by_row, mode=[0]), factor, cfg.slack, [])
    kind, ring = EndlessWalk, {}
    if cute.const_expr(cfg.stages > 1):
        kind = EndlessRingWalk
        barriers = make_barriers(smem, cfg.stages, cfg.threads)
        ring = {"stages": cfg.stages, "barriers": barriers, "is_seen": None}
    walk = kind(
        *(mma, cfg.tile, dtype, operands.readers, operands.fragments, (keys, values)),
        before=lambda number, low: number,
        score=lambda products, number, changed: None,
        softmax=softmax,
        sums=acc,
        totals=totals,
        **ring,
    )
    walk.run(tiles - 1, cute.Int32(0), (keys, values))
    add = cute.ReductionOp.ADD
    out[block, thread] = sum(r.load().reduce(add, 0.0, 0) for r in (acc, totals.sums))


@cute.jit
def chained(
    x: cute.Tensor,
    out: cute.Tensor,
    tiles: cute.Int32,
    factor: cute.Float32,
    blocks: cute.Int32,
    kind: cute.Constexpr,
    stream: cute.Int64,
):
    chained_kernel(x, out, tiles, factor, kind.cfg).launch(
        grid=(blocks, 1, 1),
        block=(kind.cfg.threads, 1, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=kind.blocks,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--only", nargs="*", default=[""], help="rows that contain one of these")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--compile", action="store_true", help="for sm_90, without a GPU")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.compile:
        return compile_only(options.only)
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    measure(options)
    return 0


def compile_only(only):
    for name, kind in kinds().items():
        if not any(text in name for text in only):
            continue
        x, out = np.zeros((64 * kind.cfg.tile[1], D), np.float16), np.zeros((264, 256), np.float32)
        code = cute.compile(
            *(chained, x, out, TILES, 0.1, 264, kind, 0), options="--gpu-arch sm_90"
        )
        (found,) = code.resources.values()
        print(f"{name:<40} {found.registers} registers, {found.spills} bytes spilled", flush=True)
    return 0


def measure(options):
    import torch
    from attention import seconds
    from narrow_bound import drawn

    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    calls, work = {}, {}
    for makers in (chained_calls, mixed_calls, whole_calls):
        try:
            for name, once, flops in makers(options):
                if any(text in name for text in options.only):
                    once()
                    torch.cuda.synchronize()
                    calls[name], work[name] = once, flops / 1e12
        except Exception as error:  # the others go on
            print(f"{makers.__name__} FAILED: {str(error)[:300]}", flush=True)
    times = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name in random.sample(list(calls), len(calls)):
            times[name].append(
                seconds(lambda once=calls[name]: [once() for _ in range(4)], BUSY) / 4
            )
    if options.rounds == 0:
        return
    rows = {name: work[name] / statistics.median(times[name]) for name in calls}
    best = max((name for name in rows if name.startswith("chained")), key=rows.get, default=None)
    for name, once in calls.items():
        is_shown = name == best or not name.startswith("chained")
        clock = drawn(once, 0.3) if is_shown else ""
        print(f"{name:<62} {rows[name]:6.1f} TFLOP/s  {clock}", flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))


def chained_calls(options):
    import torch

    processors = torch.cuda.get_device_properties(0).multi_processor_count
    stream = torch.cuda.current_stream().cuda_stream
    for name, kind in kinds().items():
        if not any(text in name for text in options.only):
            continue
        (m, n), blocks = kind.cfg.tile, kind.blocks * processors
        x = torch.randn(PLACES * n, D, device="cuda").half()
        out = torch.zeros(blocks, kind.cfg.threads, device="cuda")
        given = (x, out, TILES, math.log2(math.e) / math.sqrt(D), blocks, kind, stream)
        once = lambda given=given: chained(*given)  # noqa: E731
        yield name, once, 4 * m * n * D * TILES * blocks


def mixed_calls(options):
    import attention_bound
    import torch

    from basedsl_cute.runtime import from_dlpack

    blocks = 2 * torch.cuda.get_device_properties(0).multi_processor_count
    x = torch.randn(4096, D, device="cuda").half()
    out = torch.zeros(blocks, attention_bound.THREADS, device="cuda")
    tensors = from_dlpack(x, assumed_align=16), from_dlpack(out)
    flops = 4 * attention_bound.ROWS * attention_bound.COLUMNS * D * TILES * blocks
    for chains, kind in ((4, "mma.sync"), (4, "and cp.async"), (8, "and cp.async"),
                         (16, "and cp.async")):  # fmt: skip
        name = f"nothing waits, {chains} chains of weights, {kind}"
        if not any(text in name for text in options.only):
            continue
        bound = attention_bound.Bound(attention_bound.KINDS[kind], chains)
        compiled = cute.compile(bound, *tensors, TILES, blocks)
        once = lambda f=compiled: f(*tensors, TILES, blocks)  # noqa: E731
        yield name, once, flops


def whole_calls(options):
    import torch
    from attention import sdpa
    from attention_exact import error_of
    from torch.nn.attention import SDPBackend

    from basedsl_cute.ops import attention
    from basedsl_cute.runtime import from_dlpack

    batches, length, heads = 4, 4096, 16
    q, k, v = (torch.randn(batches, length, heads, D, device="cuda").half() for _ in range(3))
    spec = importlib.util.spec_from_file_location("attention_program", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own = [x.transpose(1, 2).reshape(-1, length, D).contiguous() for x in (q, k, v)]
    views = [
        from_dlpack(x.permute(1, 2, 0), assumed_align=16)
        .mark_layout_dynamic(leading_dim=1)
        .mark_compact_shape_dynamic(mode=1, stride_order=(2, 0, 1), divisibility=8)
        for x in (*own, torch.empty_like(own[0]))
    ]
    for causal in (False, True):
        flops = 4 * batches * heads * length**2 * D * (0.5 if causal else 1)
        text = ", causal" if causal else ""
        compiled = cute.compile(module.Attention(D, 128, 64, 4, causal), *views, D**-0.5)
        once = lambda f=compiled: f(*views, D**-0.5)  # noqa: E731
        yield f"program{text}", once, flops
        yield f"torch flash{text}", sdpa(q, k, v, causal, SDPBackend.FLASH_ATTENTION), flops
        for config in options.config:
            cfg = eval(config, {"ampere": ampere})
            out = torch.full_like(q, torch.nan)
            given = {"causal": causal, "out": out, "config": cfg}
            once = lambda given=given: attention(q, k, v, **given)  # noqa: E731
            try:
                once()
                error = error_of(out, q, k, v, causal)
            except Exception as reason:  # the others go on
                print(f"{config} FAILED: {str(reason)[:200]}", flush=True)
                continue
            if not error < 1e-2:
                print(f"{config} is WRONG: {error:.1e}", flush=True)
                continue
            yield f"{config.removeprefix('ampere.')}{text}, error {error:.0e}", once, flops


if __name__ == "__main__":
    sys.exit(main())
