"""`ops.attention` against cuDNN, PyTorch's flash attention and compiled flex attention, in one run.

    python bench/gpu/attention.py [--out rows.json] [--only TEXT ...] [--quick] [--config CONFIG]

Forward and backward passes, those of elements of 8 bits ("narrow": beside our own of 16, the error
told second), decoding (one query against long caches), functions of the user's, packed sequences,
and queries against a cache of pages (beside the same one without pages).
Inputs are fresh random normal numbers; outputs are filled with NaN before the checked call. Errors
are the largest ones against float64, of all keys and of some heads and queries, over the largest
magnitude; "error" is ours, then cuDNN's. Contenders take turns, in rows of launches that are
recorded into a CUDA graph where they can be, with the device kept busy before; medians. TFLOP/s
count half of a causal mask, and 2.5 forward passes for a backward one. Decoding tells GB/s of keys
and values, as does its copy, which counts what it reads and writes. `--config` times a further
configuration of forward passes beside the chosen one: "hopper.Config((128, 128))"; `--gradients`
one of backward passes, `--splits` one of decoding; of cases that contain a text alone as
"TEXT|hopper.Config((128, 128))". Where power is at its limit, the clock follows the power of the
last 0.1 seconds or more: in rows of 8 ms each contender runs at the clock that the mean of all has
left, whichever ran before it, and rows of one kernel differ by 6 %. In rows of 0.12 seconds
(`--seconds`) it ends at its own clock, but begins at that of its neighbour, which counts for 5 %.
With `--rounds 0` kernels are compiled and called once, so that several processes may fill the cache
on disk at a time, before one of them measures.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import attention_exact
from attention_exact import error_of, gradients

ROUNDS, SECONDS = 9, 8e-3  # of a contender: measured rows, and about how long a graph takes
ROW = SimpleNamespace(graphs=1)  # that are replayed one after the other
BEYOND_L2 = 2**28  # bytes that the caches of decoding take together
MOST_ERROR = 1e-2

# Batches, length, heads, key heads, head, causal.
SHAPES = [
    (4, 4096, 16, 16, 128, False),
    (4, 4096, 16, 16, 128, True),
    (1, 16384, 16, 16, 128, True),
    (4, 4096, 16, 16, 64, False),
    (4, 4096, 16, 16, 64, True),
    (4, 4096, 16, 16, 256, False),
    (4, 4096, 32, 4, 128, True),
    (8, 512, 16, 16, 128, True),
]
NARROW = [*SHAPES[:3], (1, 16384, 16, 16, 128, False), SHAPES[3], SHAPES[5]]
DECODING = [(1, 16384), (16, 8192), (128, 4096), (1, 131072)]  # batches, keys
FUNCTIONS = ("full", "causal", "linear bias", "window")
WINDOW = 1024
# Sequences packed together, and (sequences, queries, keys, rows of a page) of caches.
PACKED = (8192, *(4096,) * 2, *(2048,) * 4, *(1024,) * 4, *(512,) * 8)
CACHES = [(8, 512, 8192, 16), (8, 512, 8192, 128)]


def main():
    options = arguments()
    attention_exact.is_asked = options.rounds > 0
    ROW.graphs = max(1, round(options.seconds / SECONDS))
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    torch.manual_seed(int(time.time()))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    rows, failed = [], False
    asked = vars(options) | {}
    for name, measure in cases(options):
        for kind in ("config", "gradients", "splits"):
            setattr(options, kind, of_case(name, asked[kind]))
        if options.only and not any(text in name for text in options.only):
            continue
        try:
            row = {"name": name, **measure()}
        except Exception as error:  # the others go on
            failed = True
            print(f"{name:<32} FAILED: {str(error)[:300]}", flush=True)
            if options.traceback:
                traceback.print_exc()
            continue
        rows.append(row)
        failed = failed or not row["error"] < MOST_ERROR
        print(line(row), flush=True)
        torch.cuda.empty_cache()
        if options.out:
            Path(options.out).write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", nargs="*", help="cases whose names contain one of these")
    parser.add_argument("--quick", action="store_true", help="the first case of each kind")
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--gradients", action="append", default=[], metavar="CONFIG")
    parser.add_argument("--splits", action="append", default=[], metavar="CONFIG")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="measured rows of a contender")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a row, about")
    parser.add_argument("--traceback", action="store_true")
    return parser.parse_args()


def cases(options):
    """Names, and functions that measure a row."""
    found = [(f"forward {name_of(x)}", lambda x=x: forward(x, options)) for x in SHAPES]
    # cuDNN has no backward figure for the shortest sequences in the table that this follows.
    found += [(f"backward {name_of(x)}", lambda x=x: backward(x, options)) for x in SHAPES[:-1]]
    found += [
        (f"decoding {b} of {n}", lambda b=b, n=n: decoding(b, n, options)) for b, n in DECODING
    ]
    found += [(f"narrow {name_of(x)}", lambda x=x: narrow(x, options)) for x in NARROW]
    found += [(f"function {kind}", lambda kind=kind: function(kind, options)) for kind in FUNCTIONS]
    found += [(f"packed {x}", lambda x=x: packed(x, options)) for x in ("full", "causal")]
    found += [(f"pages of {x[3]}", lambda x=x: pages(x, options)) for x in CACHES]
    if options.quick:
        kinds = {name.split()[0]: (name, measure) for name, measure in reversed(found)}
        found = [kinds[kind] for kind in ("forward", "backward", "decoding")]
    return found


def of_case(name, texts):
    """The configurations that are asked for a case: those for all, and "TEXT|.." for its name."""
    parted = [text.rpartition("|") for text in texts]
    return [config for text, _, config in parted if text in name]


def name_of(shape):
    batches, length, heads, key_heads, head, causal = shape
    shared = "" if heads == key_heads else f"({key_heads})"
    return f"{batches}x{length}x{heads}{shared}x{head}{' causal' if causal else ''}"


def line(row):
    """A row as text."""
    speeds = row["speed"]
    shown = "  ".join(f"{name} {speed:.0f}" for name, speed in speeds.items())
    peers = ("cudnn", "flex", "fp16", "flash", "no pages")
    peer = next((name for name in peers if name in speeds), None)
    ratio = f"  ratio {speeds['ours'] / speeds[peer]:.3f}" if peer else ""
    peer_error = f"/{row['peer_error']:.1e}" if "peer_error" in row else ""
    wrong = "" if row["error"] < MOST_ERROR else "  WRONG"
    failures = "".join(f"\n    {name}: {why}" for name, why in row.get("failures", {}).items())
    return (
        f"{row['name']:<32} {shown}{ratio}  error {row['error']:.1e}{peer_error}{wrong}{failures}"
    )


# Inputs and references ----------------------------------------------------------------------------


def inputs(shape, dtype, queries=None):
    """q, k and v (batches, length, heads, head)."""
    import torch

    batches, length, heads, key_heads, head, _ = shape
    return [
        torch.randn(batches, rows, count, head, dtype=dtype, device="cuda")
        for rows, count in ((queries or length, heads), (length, key_heads), (length, key_heads))
    ]


# Kinds of rows ------------------------------------------------------------------------------------


def forward(shape, options):
    import torch
    from torch.nn.attention import SDPBackend

    from basedsl_cute.ops import attention
    from basedsl_cute.ops.ampere import attention as ampere
    from basedsl_cute.ops.hopper import attention as hopper

    *_, causal = shape
    q, k, v = inputs(shape, torch.float16)
    out = torch.empty_like(q)
    contenders = {"ours": lambda: attention(q, k, v, causal=causal, out=out)}
    for text in options.config:
        config = eval(text, {"hopper": hopper, "ampere": ampere})
        contenders[text] = lambda config=config: attention(
            q, k, v, causal=causal, out=out, config=config
        )
    error, failures = 0.0, {}
    for name, once in list(contenders.items()):
        out.fill_(torch.nan)
        try:
            once()
        except Exception as reason:  # the others go on
            failures[name] = str(reason)[:200]
            del contenders[name]
            continue
        found = error_of(out, q, k, v, causal)
        if name == "ours":
            error = found
        elif not found < MOST_ERROR:
            failures[name] = f"its error is {found:.1e}"
    peers = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    contenders |= {name: sdpa(q, k, v, causal, backend) for name, backend in peers.items()}
    peer_error = error_of(contenders["cudnn"]().transpose(1, 2), q, k, v, causal)
    speed = speeds(contenders, flops_of(shape) / 1e12, options.rounds)
    return {"speed": speed, "error": error, "peer_error": peer_error, "failures": failures}


def narrow(shape, options):
    """Elements of Float8E4M3FN with a factor of each head, beside the same in Float16."""
    import torch

    from basedsl_cute.ops import attention
    from basedsl_cute.ops.hopper import attention as hopper

    *_, causal = shape
    halves = inputs(shape, torch.float16)
    scales, narrowed = [], []
    for x in halves:
        scale = x.abs().amax((1, 3)).float() / 448
        scales.append(scale)
        narrowed.append((x / scale[:, None, :, None]).to(torch.float8_e4m3fn))
    names = ("q_scale", "k_scale", "v_scale")
    given = {"causal": causal, **dict(zip(names, scales, strict=True))}
    out, half_out = torch.empty_like(halves[0], dtype=torch.bfloat16), torch.empty_like(halves[0])
    contenders = {
        "ours": lambda: attention(*narrowed, out=out, **given),
        "fp16": lambda: attention(*halves, out=half_out, causal=causal),
    }
    for text in options.config:
        config = eval(text, {"hopper": hopper})
        contenders[text] = lambda config=config: attention(
            *narrowed, out=out, config=config, **given
        )
    exact_inputs = [
        x.double() * scale[:, None, :, None] for x, scale in zip(narrowed, scales, strict=True)
    ]
    errors, failures = {}, {}
    for name, once in list(contenders.items()):
        if name != "fp16":
            out.fill_(torch.nan)
            try:
                once()
            except Exception as reason:  # the others go on
                failures[name] = str(reason)[:200]
                del contenders[name]
                continue
            errors[name] = error_of(out, *exact_inputs, causal)
    worst = errors["ours"]
    speed = speeds(contenders, flops_of(shape) / 1e12, options.rounds)
    # Weights have four significant bits: the check is of the kernel, the number told with it.
    failures |= {name: f"its error is {x:.1e}" for name, x in errors.items() if name != "ours"}
    error = 0.0 if worst < 0.05 else float("inf")
    return {"speed": speed, "error": error, "peer_error": worst, "failures": failures}


def sdpa(q, k, v, causal, backend):
    """PyTorch's attention by one backend."""
    import torch
    from torch.nn.attention import sdpa_kernel

    turned = [x.transpose(1, 2) for x in (q, k, v)]
    shared = q.shape[2] != k.shape[2]

    def once():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                *turned, is_causal=causal, enable_gqa=shared
            )

    return once


def backward(shape, options):
    import torch
    from torch.nn.attention import SDPBackend

    from basedsl_cute.ops import attention, attention_backward
    from basedsl_cute.ops.hopper import attention_backward as hopper

    *_, causal = shape
    q, k, v = inputs(shape, torch.float16)
    grad = torch.randn_like(q)
    out, lse = attention(q, k, v, causal=causal, return_lse=True)
    given = (grad, q, k, v, out, lse)
    contenders = {
        "ours": lambda: attention_backward(*given, causal=causal),
        "deterministic": lambda: attention_backward(*given, causal=causal, deterministic=True),
    }
    for text in options.gradients:
        config = eval(text, {"hopper": hopper})
        contenders[text] = lambda config=config: attention_backward(
            *given, causal=causal, config=config
        )
    results = {name: once() for name, once in contenders.items()}
    for name, backend in (
        ("cudnn", SDPBackend.CUDNN_ATTENTION),
        ("flash", SDPBackend.FLASH_ATTENTION),
    ):
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        made = sdpa(*leaves, causal, backend)()
        contenders[name] = lambda made=made, leaves=leaves: torch.autograd.grad(
            made, leaves, grad.transpose(1, 2), retain_graph=True
        )
        results[name] = contenders[name]()
    if options.rounds == 0:
        return {"speed": dict.fromkeys(contenders, 1.0), "error": 0.0}
    batch, key_head = random.randrange(q.shape[0]), random.randrange(k.shape[2])
    wanted = gradients(grad, q, k, v, batch, key_head, causal)
    errors = {}
    for name, found in results.items():
        heads = (key_head * (q.shape[2] // k.shape[2]), key_head, key_head)
        pairs = zip(found, wanted, heads, strict=True)
        errors[name] = max(
            float(
                ((x[batch, :, head].double() - y).abs().max() / y.abs().max()).nan_to_num(torch.inf)
            )
            for x, y, head in pairs
        )
    del wanted
    again = contenders["deterministic"]()
    same = all(torch.equal(x, y) for x, y in zip(again, results["deterministic"], strict=True))
    speed = speeds(contenders, 2.5 * flops_of(shape) / 1e12, options.rounds, graphs=False)
    failures = {} if same else {"deterministic": "gradients differ from run to run"}
    for text in options.gradients:
        if not errors[text] < MOST_ERROR:
            failures[text] = f"its error is {errors[text]:.1e}"
    error = max(errors["ours"], errors["deterministic"])
    return {
        "speed": speed,
        "error": error if same else float("inf"),
        "peer_error": errors["cudnn"],
        "failures": failures,
    }


def decoding(batches, keys, options):
    import torch
    from torch.nn.attention import SDPBackend

    from basedsl_cute.ops import attention
    from basedsl_cute.ops.ampere import attention as ampere

    shape = (batches, keys, 32, 8, 128, False)
    each = batches * keys * 8 * 128 * 2 * 2
    copies = [inputs(shape, torch.bfloat16, queries=1) for _ in range(-(-BEYOND_L2 // each))]
    out = torch.full_like(copies[0][0], torch.nan)
    attention(*copies[0], out=out)
    error = error_of(out, *copies[0], False)
    cudnn = [sdpa(*x, False, SDPBackend.CUDNN_ATTENTION) for x in copies]
    peer_error = error_of(cudnn[0]().transpose(1, 2), *copies[0], False)
    contenders = {
        "ours": [lambda x=x: attention(*x, out=out) for x in copies],
        "cudnn": cudnn,
        # Half is read and half is written.
        "copy": [lambda x=x: x[2].copy_(x[1]) for x in copies],
    }
    failures = {}
    for text in options.splits:
        config = eval(text, {"ampere": ampere})
        contenders[text] = [
            lambda x=x, config=config: attention(*x, out=out, config=config) for x in copies
        ]
        out.fill_(torch.nan)
        try:
            contenders[text][0]()
        except Exception as reason:  # the others go on
            failures[text] = str(reason)[:200]
            del contenders[text]
            continue
        found = error_of(out, *copies[0], False)
        if not found < MOST_ERROR:
            failures[text] = f"its error is {found:.1e}"
    speed = speeds(contenders, each / 1e9, options.rounds)
    return {
        "speed": speed,
        "error": error,
        "peer_error": peer_error,
        "unit": "GB/s",
        "failures": failures,
    }


def packed(kind, options):
    """Sequences of different lengths in one call."""
    import torch

    from basedsl_cute.ops import attention
    from basedsl_cute.ops.ampere import attention as ampere

    causal, heads, head = kind == "causal", 16, 128
    lengths = list(PACKED)
    random.shuffle(lengths)
    starts = torch.tensor([0, *lengths], device="cuda").cumsum(0).int()
    q, k, v = (x[0] for x in inputs((1, sum(lengths), heads, heads, head, causal), torch.float16))
    out, longest = torch.empty_like(q), max(lengths)
    given = {"cu_seqlens_q": starts, "cu_seqlens_k": starts, "causal": causal, "out": out}
    given |= {"max_seqlen_q": longest, "max_seqlen_k": longest}
    contenders = {
        "ours": lambda: attention(q, k, v, **given),
        "mma.sync": lambda: attention(q, k, v, config=ampere.Config((64, 64)), **given),
    }
    errors = []
    for once in contenders.values():
        out.fill_(torch.nan)
        once()
        for i in random.sample(range(len(lengths)), 3):
            own = slice(int(starts[i]), int(starts[i + 1]))
            errors.append(error_of(*(x[None, own] for x in (out, q, k, v)), causal))
    contenders["flash"] = lambda: torch.ops.aten._flash_attention_forward(
        q, k, v, starts, starts, longest, longest, 0.0, causal, False
    )
    work = sum(4 * heads * n**2 * head * (0.5 if causal else 1.0) for n in lengths)
    return {"speed": speeds(contenders, work / 1e12, options.rounds), "error": max(errors)}


def pages(shape, options):
    """Some queries against a cache of pages: a prompt that comes in parts."""
    import torch

    from basedsl_cute.ops import attention
    from basedsl_cute.ops.ampere import attention as ampere

    batches, queries, keys, rows = shape
    heads, key_heads, head = 32, 8, 128
    q, k, v = inputs((batches, keys, heads, key_heads, head, True), torch.float16, queries)
    table = torch.randperm(batches * keys // rows, device="cuda").int().view(batches, -1)
    caches = [torch.empty_like(x).view(-1, rows, key_heads, head) for x in (k, v)]
    for cache, x in zip(caches, (k, v), strict=True):
        cache[table.flatten().long()] = x.view(-1, rows, key_heads, head)
    used = torch.full((batches,), keys, device="cuda", dtype=torch.int32)
    out = torch.empty_like(q)
    given = {"block_table": table, "seqused_k": used, "causal": True, "out": out}
    contenders = {
        "ours": lambda: attention(q, *caches, **given),
        "mma.sync": lambda: attention(q, *caches, config=ampere.Config((64, 64)), **given),
        "no pages": lambda: attention(q, k, v, causal=True, out=out),
    }
    errors = []
    for once in contenders.values():
        out.fill_(torch.nan)
        once()
        errors.append(error_of(out, q, k, v, True))
    work = 4 * batches * heads * queries * (keys - queries / 2) * head
    return {"speed": speeds(contenders, work / 1e12, options.rounds), "error": max(errors)}


def function(kind, options):
    """Functions of the user's beside what is built in, and compiled flex attention."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    from basedsl_cute.ops import attention
    from basedsl_cute.ops.hopper import attention as hopper

    shape = SHAPES[0]
    q, k, v = inputs(shape, torch.float16)
    out, (_, length, heads, *_) = torch.empty_like(q), shape
    slopes = torch.exp2(-torch.arange(1, heads + 1, device="cuda") / 2)

    def linear(s, batch, head, q, k):
        return s - slopes[head] * (q - k)

    def below(batch, head, q, k):
        return k <= q

    def near(batch, head, q, k):
        return (k <= q) & (q - k <= WINDOW)

    own, built_in, mask, fraction = {}, {}, None, 1.0
    if kind != "full":
        own, built_in, mask, fraction = {"mask": below}, {"causal": True}, below, 0.5
    score = linear if kind == "linear bias" else None
    if score is not None:
        own["score"], built_in["alibi"] = linear, slopes
    if kind == "window":
        own, mask = {"mask": near}, near
        built_in["window"] = (WINDOW, 0)
        fraction = sum(min(i, WINDOW) + 1 for i in range(length)) / length**2
    blocks = None if mask is None else create_block_mask(mask, None, None, length, length)
    flex = torch.compile(flex_attention)
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    contenders = {
        "ours": lambda: attention(q, k, v, out=out, **own),
        "built in": lambda: attention(q, k, v, out=out, **built_in),
        "flex": lambda: flex(*turned, score_mod=score, block_mask=blocks),
    }
    for text in options.config:
        config = eval(text, {"hopper": hopper})
        contenders[text] = lambda config=config: attention(q, k, v, out=out, config=config, **own)

    def exact_score(s, head, i, j):
        return s - slopes[head].double() * (i - j)

    checks = (
        mask is not None,
        exact_score if score else None,
        (lambda i, j: i - j <= WINDOW) if kind == "window" else None,
    )
    errors = {}
    for name in ("ours", "built in", *options.config):
        out.fill_(torch.nan)
        contenders[name]()
        errors[name] = error_of(out, q, k, v, *checks)
    peer_error = error_of(contenders["flex"]().transpose(1, 2), q, k, v, *checks)
    speed = speeds(contenders, fraction * flops_of(shape) / 1e12, options.rounds)
    return {"speed": speed, "error": max(errors.values()), "peer_error": peer_error}


def flops_of(shape):
    """Floating-point operations of a forward pass; a causal mask counts half."""
    batches, length, heads, _, head, causal = shape
    return 4 * batches * heads * length**2 * head * (0.5 if causal else 1.0)


# Timing -------------------------------------------------------------------------------------------


def speeds(contenders, work, rounds, graphs=True):
    """`work` over the median seconds of a call of each contender, a function or a list of such."""
    rows = {}
    for name, calls in contenders.items():
        calls = calls if isinstance(calls, list) else [calls]
        for once in calls[:2]:
            once()  # compiles, tunes, warms up
        if rounds == 0:
            continue
        each = seconds(lambda calls=calls: [once() for once in calls]) / len(calls)
        count = max(1, min(200, int(SECONDS / each / len(calls))))
        rows[name] = recorded(calls * count, graphs), count * len(calls) * ROW.graphs
    times = {name: [] for name in rows}
    names = list(rows)
    for _ in range(rounds):
        random.shuffle(names)
        for name in names:
            row, count = rows[name]
            times[name].append(seconds(row, 1_000_000 if graphs else 30_000_000) / count)
    if rounds == 0:
        return dict.fromkeys(contenders, 1.0)
    return {name: work / statistics.median(taken) for name, taken in times.items()}


def recorded(calls, graphs):
    """A row of calls as one CUDA graph, or as it is where that cannot be recorded."""
    import torch

    def row():
        for once in calls:
            once()

    if not graphs:
        return row
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            row()
    except Exception as error:  # a library that cannot be recorded
        torch.cuda.synchronize()
        print(f"  not recorded: {str(error).splitlines()[0][:150]}", flush=True)
        return row
    graph.replay()
    return graph.replay


def seconds(row, busy=1_000_000):
    """Device seconds of a row of calls, queued while the device is kept busy."""
    import torch

    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(busy)
    start.record()
    for _ in range(ROW.graphs):
        row()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3


if __name__ == "__main__":
    sys.exit(main())
