"""The most that decoding can reach on this GPU: kernels that read keys and values as it does, and
compute nothing.

    python bench/gpu/decoding_bound.py [--only 16x8192] [--out rows.json]
    python bench/gpu/decoding_bound.py --sim            # no GPU: a tiny cache, results only

Readers take the blocks, the splits and the copies of `ops.ampere.attention` for one query: each
block has its keys and values, tile by tile, by cp.async into the same shared memory. "waits" waits
for each tile and at each barrier, as the kernel does; "no waits" never, so that all its loads are
in flight; "vectors" reads in the order of memory by loads of 16 bytes into registers, as many
blocks as a multiprocessor holds. None of them writes more than a number a block. Beside them are
`ops.attention`, cuDNN, and a copy, which counts what it reads and writes. Caches together are
beyond the L2 cache, and alternate from call to call; contenders take turns; medians of GB/s of keys
and values. 32 heads of 128 elements, 8 of keys; BFloat16.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.few_queries import with_splits
from basedsl_cute.ops.flash.variant import Sequence
from basedsl_cute.utils import hopper_helpers as sm90

HEADS, KEY_HEADS, HEAD = 32, 8, 128
CASES = {"16x8192": (16, 8192), "1x16384": (1, 16384), "128x4096": (128, 4096)}
ROUNDS = 15
VECTOR, AT_ONCE = 8, 8  # elements of a load, and loads of a thread in flight
THREADS = 256


@cute.kernel
def tiles_kernel(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    waits: cute.Constexpr,
    cfg: cute.Constexpr,
):
    """Read the keys and values of a block as `ops.ampere.attention` does."""
    (m, n), dtype, thread = cfg.tile, k.element_type, arch.thread_idx()[0]
    _, key_head, z = arch.block_idx()
    batch, split = z // cfg.splits, z % cfg.splits
    smem = cute.utils.SmemAllocator()
    row, column = sm90.LayoutEnum.ROW_MAJOR, sm90.LayoutEnum.COL_MAJOR
    sq = smem.allocate_tensor(dtype, sm90.make_smem_layout_a(row, (m, n, HEAD), dtype, 1), 1024)
    sk = smem.allocate_tensor(dtype, sm90.make_smem_layout_b(row, (m, n, HEAD), dtype, 1), 1024)
    sv = smem.allocate_tensor(dtype, sm90.make_smem_layout_b(column, (m, HEAD, n), dtype, 1), 1024)
    copy_k = ampere.RowCopier(sk, cfg, thread)
    copy_v = ampere.RowCopier(sv, cfg, thread, by_column=True)
    sequence = Sequence(cute.Int32(1), cute.Int32(k.shape[0]))
    rows_k, rows_v = (ampere.KeyRows(x, key_head, batch, sequence, None) for x in (k, v))
    each = cute.ceil_div(cute.ceil_div(sequence.keys, n), cfg.splits)
    low = split * each
    number = cute.min(cute.ceil_div(sequence.keys, n), low + each) - 1

    def query_row(row):
        inside = row < cfg.packed
        head = key_head * cfg.packed + cute.where(inside, row, 0)
        return q[0, None, head, batch], inside

    ampere.RowCopier(sq, cfg, thread).copy(query_row)
    has_keys = number >= low
    if has_keys:
        copy_k.copy(lambda row, number=number: rows_k(number * n + row))
    arch.cp_async_commit_group()
    while number >= low:
        key = number * n
        wait(waits)
        copy_v.copy(lambda row, key=key: rows_v(key + row))
        arch.cp_async_commit_group()
        wait(waits)
        number = number - 1
        if number >= low:
            copy_k.copy(lambda row, number=number: rows_k(number * n + row))
        arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    if has_keys and thread == 0:
        # The first elements of what was read last: proof that it came.
        firsts = [cute.Float32(x[0, 0, 0]) for x in (sq, sk, sv)]
        out[key_head, z] = firsts[0] + firsts[1] + firsts[2]


@cute.jit
def wait(waits: cute.Constexpr):
    """Wait for a block's copies, if `waits`."""
    if cute.const_expr(waits):
        arch.cp_async_wait_group(0)
        arch.sync_threads()


@cute.jit
def read_tiles(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    waits: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Int64,
):
    """Read `q`, `k` and `v` (batches, length, heads, head); `out` is (heads of keys, batches x
    splits).
    """
    rows = [cute.select(x, [1, 3, 2, 0]) for x in (q, k, v)]
    tiles_kernel(*rows, out, waits, cfg).launch(
        grid=(1, KEY_HEADS, k.shape[0] * cfg.splits),
        block=(cfg.threads, 1, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
    )


@cute.kernel
def vectors_kernel(k: cute.Tensor, v: cute.Tensor, out: cute.Tensor):
    """Read both tensors, vector by vector, block after block."""
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    first = block * THREADS + thread
    step = arch.grid_dim()[0] * THREADS
    total = cute.Int32(0)
    held = cute.make_rmem_tensor((VECTOR, AT_ONCE), k.element_type)
    words = cute.recast_tensor(held, cute.Int32)
    for x in (k, v):
        count = cute.size(x) // VECTOR
        for at in cute.range(first, count, step * AT_ONCE, unroll=1):
            for i in cute.range_constexpr(AT_ONCE):
                place = cute.min(at + i * step, count - 1)
                cute.autovec_copy(cute.local_tile(x, (VECTOR,), (place,)), held[None, i])
            total = total ^ words.load().reduce(cute.ReductionOp.ADD, cute.Int32(0), 0)
    if total == 0x12345678:  # so that loads are not left out
        out[0] = cute.Float32(total)


@cute.jit
def read_vectors(
    k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, blocks: cute.Int32, stream: cute.Int64
):
    """Read `k` and `v`, contiguous vectors."""
    vectors_kernel(k, v, out).launch(
        grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=cute.Stream(stream.ir_value())
    )


def config_of(batches, keys, processors):
    """The configuration of `ops.attention` for one query, without warps along keys."""
    group = HEADS // KEY_HEADS
    config = ampere.Config((16, 64), 1, group)
    return with_splits(config, KEY_HEADS * batches, keys, processors)


def simulate():
    """Check on the simulator that readers come to the first rows of each block's keys."""
    draw = np.random.default_rng().standard_normal
    shapes = ((1, HEADS), (300, KEY_HEADS), (300, KEY_HEADS))
    q, k, v = (draw((2, *shape, HEAD)).astype(np.float16) for shape in shapes)
    for keys in (32, 64):
        config = replace(ampere.Config((16, keys), 1, HEADS // KEY_HEADS), splits=3)
        out = np.full((KEY_HEADS, 6), np.nan, np.float32)
        read_tiles(q, k, v, out, True, config, 0)
        tiles = -(-300 // keys)
        each = -(-tiles // 3)
        for batch in range(2):
            for split in range(3):
                row = split * each * keys
                firsts = q[batch, 0, ::4, 0], k[batch, row, :, 0], v[batch, row, :, 0]
                wanted = sum(np.float32(x) for x in firsts)
                np.testing.assert_array_equal(out[:, batch * 3 + split], wanted)
    read_vectors(k.reshape(-1), v.reshape(-1), np.zeros(1, np.float32), 2, 0)
    print("readers come to the last tile of each block")


def measure(name, options):
    import attention as bench
    import torch

    batches, keys = CASES[name]
    shape = (batches, keys, HEADS, KEY_HEADS, HEAD, False)
    each = batches * keys * KEY_HEADS * HEAD * 2 * 2
    count = -(-bench.BEYOND_L2 // each)
    copies = [bench.inputs(shape, torch.bfloat16, queries=1) for _ in range(count)]
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    config = config_of(batches, keys, processors)
    sums = torch.zeros(KEY_HEADS, batches * max(config.splits, 64), device="cuda")
    out = torch.empty_like(copies[0][0])

    def stream():
        return torch.cuda.current_stream().cuda_stream

    def tiles(waits, config):
        return [lambda x=x: read_tiles(*x, sums, waits, config, stream()) for x in copies]

    cudnn = torch.nn.attention.SDPBackend.CUDNN_ATTENTION
    contenders = {
        "ours": [lambda x=x: flash.attention(*x, out=out) for x in copies],
        "cudnn": [bench.sdpa(*x, False, cudnn) for x in copies],
        "copy": [lambda x=x: x[2].copy_(x[1]) for x in copies],
        "waits": tiles(True, config),
        "no waits": tiles(False, config),
        "waits, 64 keys, 4 splits": tiles(True, replace(config, tile=(16, 64), splits=4)),
    }
    for blocks in (2, 8):
        contenders[f"vectors, {blocks} blocks"] = [
            lambda k=k, v=v, n=blocks * processors: read_vectors(
                k.view(-1), v.view(-1), sums, n, stream()
            )
            for _, k, v in copies
        ]
    speed = bench.speeds(contenders, each / 1e9, options.rounds)
    print(f"{name}, {config.tile}, {config.splits} splits; GB/s, and of cuDNN's")
    for kind, x in speed.items():
        print(f"  {kind:<26} {x:7.0f} {x / speed['cudnn']:6.3f}", flush=True)
    return speed


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.sim:
        return simulate()
    import torch

    if not torch.cuda.is_available():
        return print("no CUDA device here")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    rows = {name: measure(name, options) for name in options.only}
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
