"""One query against caches of many extents: blocks, warps and splits beside the chosen ones.

    python bench/gpu/decoding_shapes.py [--pages 16] [--only 128x4096] [--seconds 90] [--out FILE]
    python bench/gpu/decoding_shapes.py --shapes 12x8192x32x8x128 --configs single "4 x 1 early"
    python bench/gpu/decoding_shapes.py --sim        # no GPU: tiny caches, results only

"ours" is what `ops.attention` chooses, "single" the kernel whose blocks have one warp. "8 x 2" has
blocks of 8 warps along keys and two splits of them, "early" is launched while the call before ends,
"lets" lets the call that follows take places before it ends. With `--pages`, caches are of pages of
so many rows (cuDNN's are not). Caches together are beyond the L2 cache, and alternate from call to
call; contenders take turns; medians of GB/s of keys and values. First calls are checked that read
what the call just before has written: a row of them has the results of one after the other. Kernels
are compiled before, by processes that share the cache on disk, for half of the seconds at most.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compile_ahead import compile_all

from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash.few_queries import with_key_warps, with_splits

# Batches, keys, heads, key heads, head.
SHAPES = [
    *((1, keys, 32, 8, 128) for keys in (512, 1024, 2048, 4096, 16384, 131072)),
    *((4, keys, 32, 8, 128) for keys in (1024, 8192)),
    *((8, keys, 32, 8, 128) for keys in (2048, 8192)),
    *((16, keys, 32, 8, 128) for keys in (512, 2048, 8192)),
    *((batches, 4096, 32, 8, 128) for batches in (6, 12, 20, 32, 64, 128)),
    *((batches, 8192, 32, 32, 128) for batches in (1, 4)),
    *((batches, keys, 64, 8, 64) for batches, keys in ((1, 16384), (16, 8192))),
    *((batches, keys, 16, 8, 256) for batches, keys in ((1, 16384), (16, 8192))),
    (16, 4096, 24, 8, 192),
]
CHAINED = [
    (16, 1024, 32, 8, 128),
    (2, 4096, 32, 8, 128),
    (1, 2048, 32, 8, 128),
    (128, 256, 8, 8, 64),
]
PROCESSORS = 132
ROUNDS, MOST_ERROR = 7, 1e-2


def configs(shape, processors):
    """Names and configurations to compare for a shape."""
    batches, keys, heads, key_heads, head = shape
    group, blocks = heads // key_heads, batches * key_heads
    start = Config((16, 64 if head <= 128 else 32), 1, group, overlap=True)
    found = {"single": with_splits(start, blocks, keys, processors)}
    chosen = with_key_warps(start, processors, 1, (head, head), processors)
    together, stages = chosen.key_warps, chosen.stages
    for resident in (1, 2, 4):
        warps = together // resident
        if warps < 2:
            continue
        own = replace(chosen, key_warps=warps, stages=stages)
        most = min(resident * processors // blocks, -(-keys // (16 * warps)))
        for splits in sorted({1, max(1, most)}):
            for early, lets in ((True, True), (True, False), (False, splits > 1)):
                if splits > 1 and not lets:
                    continue
                name = f"{warps} x {splits}{' early' * early}{' lets' * lets}"
                found[name] = replace(own, splits=splits, early=early, overlap=lets)
    if together > 4:
        half = replace(chosen, key_warps=together // 2, stages=2 * stages, early=True)
        splits = max(1, min(processors // blocks, -(-keys // (16 * half.key_warps))))
        name = f"{half.key_warps} x {splits} twice the stages"
        found[name] = replace(half, splits=splits, overlap=splits > 1)
    return found


def operands(shape, device, dtype, pages=None):
    """A query, a cache, and what else a call needs to know of it."""
    import torch

    batches, keys, heads, key_heads, head = shape
    q = torch.randn(batches, 1, heads, head, dtype=dtype, device=device)
    k, v = (
        torch.randn(batches, keys, key_heads, head, dtype=dtype, device=device) for _ in range(2)
    )
    if pages is None:
        return (q, k, v), {}, (q, k, v)
    count = -(-keys // pages)
    table = torch.randperm(batches * count, device=device).int().view(batches, count)
    caches = []
    for x in (k, v):
        cache = torch.zeros(batches * count * pages, key_heads, head, dtype=dtype, device=device)
        rows = (table.long() * pages)[:, :, None] + torch.arange(pages, device=device)
        cache[rows.view(batches, -1)[:, :keys]] = x
        caches.append(cache.view(-1, pages, key_heads, head))
    used = torch.full((batches,), keys, dtype=torch.int32, device=device)
    return (q, *caches), {"block_table": table, "seqused_k": used}, (q, k, v)


def check_chains(shapes, device, dtype, synchronize, calls=8):
    """Compare calls in a row, whose queries and keys are written just before, with the same calls
    one after the other; raise AssertionError for results that differ.
    """
    import torch

    for shape in shapes:
        sets = [operands(shape, device, dtype)[0] for _ in range(3)]
        keys = torch.empty_like(sets[0][1])

        def row(pause, sets=sets, keys=keys):
            q, results = sets[0][0], []
            for i in range(calls):
                _, k, v = sets[i % 3]
                keys.copy_(k)
                for cache in (keys, k):
                    q = attention(q * 4, cache, v)
                    pause()
                    q = attention(q, cache, v)
                    pause()
                    results.append(q)
            return results

        wanted = row(synchronize)
        found = row(lambda: None)
        synchronize()
        for one, other in zip(found, wanted, strict=True):
            assert torch.equal(one, other), f"calls in a row differ for {shape}"
    print(f"{len(shapes)} rows of calls that read what was just written: equal", flush=True)


def asked(shape, options, processors):
    """The configurations to compare that the command line asks for, by name."""
    found = configs(shape, processors)
    return {x: one for x, one in found.items() if not options.configs or x in options.configs}


def shapes_of(options):
    """The shapes that the command line asks for, by name."""
    given = [tuple(map(int, name.split("x"))) for name in options.shapes]
    named = {"x".join(map(str, shape)): shape for shape in given or SHAPES}
    only = options.only or [""]
    return {name: shape for name, shape in named.items() if any(text in name for text in only)}


def measure(shape, options, processors):
    """GB/s of each contender, and the configurations that failed."""
    import attention as bench
    import torch
    from attention_exact import error_of

    batches, keys, _, key_heads, head = shape
    each = 4 * batches * keys * key_heads * head
    count = max(2, -(-bench.BEYOND_L2 // each))
    sets = [operands(shape, "cuda", torch.bfloat16, options.pages) for _ in range(count)]
    out = torch.empty_like(sets[0][0][0])
    contenders, failures = {}, {}
    for name, config in {"ours": None, **asked(shape, options, processors)}.items():
        calls = [
            lambda x=x, more=more, config=config: attention(*x, out=out, config=config, **more)
            for x, more, _ in sets
        ]
        out.fill_(torch.nan)
        try:
            calls[0]()
        except Exception as reason:  # the others go on
            failures[name] = str(reason)[:200]
            continue
        error = error_of(out, *sets[0][2], False)
        if error < MOST_ERROR:
            contenders[name] = calls
        else:
            failures[name] = f"its error is {error:.1e}"
    cudnn = torch.nn.attention.SDPBackend.CUDNN_ATTENTION
    contenders["cudnn"] = [bench.sdpa(*x, False, cudnn) for _, _, x in sets]
    return bench.speeds(contenders, each / 1e9, options.rounds), failures


def compile_some(options, processors):
    """Compile a share of the kernels, by a call of each."""
    import torch

    first, step = options.compile
    number = 0
    for shape in shapes_of(options).values():
        for config in (None, *asked(shape, options, processors).values()):
            number += 1
            if number % step == first:
                x, more, _ = operands(shape, "cuda", torch.bfloat16, options.pages)
                attention(*x, config=config, **more)


def simulate():
    """Check all configurations on the simulator, with tiny caches."""
    import torch

    torch.manual_seed(0)
    for shape, pages in (((1, 300, 4, 2, 64), None), ((2, 150, 4, 2, 128), 16)):
        x, more, plain = operands(shape, "cpu", torch.float16, pages)
        q, k, v = (a.transpose(1, 2).double() for a in plain)
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        found = configs(shape, 4)
        for config in found.values():
            error = (attention(*x, config=config, **more) - wanted.transpose(1, 2)).abs().max()
            assert error < 4e-3, config
        print(f"{shape}: {len(found)} configurations agree with float64")
    check_chains([(2, 100, 4, 2, 64)], "cpu", torch.float16, lambda: None, calls=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("--pages", type=int)
    parser.add_argument("--only", nargs="*", help="shapes whose names contain one of these")
    parser.add_argument("--shapes", nargs="*", default=[], help="instead of the usual ones")
    parser.add_argument("--configs", nargs="*", help="names of those beside ours, by default all")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--workers", type=int, default=16, help="0 where all is compiled")
    parser.add_argument("--compile", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.sim:
        return simulate()
    import torch

    if not torch.cuda.is_available():
        return print("no CUDA device here")
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    if options.compile:
        return compile_some(options, processors)
    end = time.time() + options.seconds
    if options.workers:
        compile_all(options.workers, options.seconds / 2)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    if not options.shapes:
        check_chains(CHAINED, "cuda", torch.bfloat16, torch.cuda.synchronize)
    rows = {}
    for name, shape in shapes_of(options).items():
        if time.time() > end:
            print("out of time")
            break
        speed, failures = measure(shape, options, processors)
        rows[name] = speed
        shown = "  ".join(f"{kind}: {x:.0f}" for kind, x in speed.items())
        print(
            f"{name:<20} {speed['ours'] / speed['cudnn']:.3f}  {shown}", failures or "", flush=True
        )
        torch.cuda.empty_cache()
        if options.out:
            Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
