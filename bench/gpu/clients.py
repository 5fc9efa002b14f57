"""Kernels of `quack-kernels`, which imports CuTe's DSL, as they are on this package: right at large
sizes, and timed in turns with PyTorch's and with a copy of the same bytes.

    CLIENTS=FOLDER basedsl run --as cutlass bench/gpu/clients.py [--only NAME] [--out rows.json]

FOLDER has the unpacked wheel of `pip download --no-deps quack-kernels==VERSION`; what else that
package imports (apache-tvm-ffi, einops) is found there or installed. Each row calls the function
that the client offers, through PyTorch's dispatcher; times are between two CUDA events around
several calls that are queued while the device is kept busy; medians. `--small` are sizes for a try.
"""

import argparse
import importlib
import json
import os
import statistics
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, os.environ["CLIENTS"])

import torch
import torch.nn.functional as F

norm, softmax, entropy, topk = (
    importlib.import_module(f"quack.{name}")
    for name in ("rmsnorm", "softmax", "cross_entropy", "topk")
)
ROUNDS, CALLS = 9, 4
GEMMS = 3  # how many of the configurations; the client's later version takes half a minute for one
DEVICE = "cuda"
BF16, FP16 = torch.bfloat16, torch.float16


@dataclass
class Row:
    """One function: `work` in bytes or flops, calls that return tensors, the largest allowed error
    relative to each result's largest magnitude.
    """

    name: str
    work: float
    calls: dict
    exact: tuple
    allowed: float
    unit: str = "GB/s"


def normal(*shape, dtype=BF16):
    return torch.randn(shape, device=DEVICE).to(dtype)


def copies(size):
    source = torch.empty(size // 2, dtype=torch.uint8, device=DEVICE).random_()
    target = torch.empty_like(source)
    return lambda: (target.copy_(source),)


def norms(shrink):
    rows, columns = 16384 // shrink, 8192 // shrink
    x, w, dout = normal(rows, columns), torch.randn(columns, device=DEVICE), normal(rows, columns)
    wide = x.float()
    rstd = torch.rsqrt((wide * wide).mean(-1) + 1e-6)
    half = w.to(x.dtype)  # PyTorch's kernel wants one type
    size = 2 * x.nbytes
    yield Row(
        "rmsnorm forward", size,
        {"ours": lambda: norm.rmsnorm_fwd(x, w)[:1],
         "torch": lambda: (F.rms_norm(x, (columns,), half, 1e-6),), "copy": copies(size)},
        (wide * rstd[:, None] * w,), 8e-3,
    )  # fmt: skip
    leaf, weight = x.detach().requires_grad_(), half.detach().requires_grad_()
    out = F.rms_norm(leaf, (columns,), weight, 1e-6)
    hat, scaled = wide * rstd[:, None], dout.float() * w
    dx = (scaled - hat * (hat * scaled).mean(-1, keepdim=True)) * rstd[:, None]
    yield Row(
        "rmsnorm backward", 3 * x.nbytes,
        {"ours": lambda: norm.rmsnorm_bwd(x, w, dout, rstd)[:2],
         "torch": lambda: torch.autograd.grad(out, (leaf, weight), dout, retain_graph=True),
         "copy": copies(3 * x.nbytes)},
        (dx, (dout.float() * hat).sum(0)), 1e-2,
    )  # fmt: skip
    yield Row(
        "layernorm forward", size,
        {"ours": lambda: (norm.layernorm_fwd(x, w, eps=1e-6),),
         "torch": lambda: (F.layer_norm(x, (columns,), half, None, 1e-6),), "copy": copies(size)},
        (F.layer_norm(wide, (columns,), w, None, 1e-6),), 8e-3,
    )  # fmt: skip


def softmaxes(shrink):
    x = normal(16384 // shrink, 8192 // shrink)
    y, dy = torch.softmax(x, -1), normal(*x.shape)
    size = 2 * x.nbytes
    yield Row(
        "softmax forward", size,
        {"ours": lambda: (softmax.softmax_fwd(x),), "torch": lambda: (torch.softmax(x, -1),),
         "copy": copies(size)},
        (torch.softmax(x.float(), -1),), 8e-3,
    )  # fmt: skip
    wide = y.float(), dy.float()
    exact = wide[0] * (wide[1] - (wide[0] * wide[1]).sum(-1, keepdim=True))
    yield Row(
        "softmax backward", 3 * x.nbytes,
        {"ours": lambda: (softmax.softmax_bwd(dy, y),),
         "torch": lambda: (torch._softmax_backward_data(dy, y, -1, x.dtype),),
         "copy": copies(3 * x.nbytes)},
        (exact,), 8e-3,
    )  # fmt: skip


def entropies(shrink):
    for rows, columns in ((16384 // shrink, 8192 // shrink), (4096 // shrink, 131072)):
        x = normal(rows, columns)
        target = torch.randint(0, columns, (rows,), device=DEVICE)
        dloss = torch.rand(rows, device=DEVICE)
        wide = x.float()
        lse = torch.logsumexp(wide, -1)
        loss = lse - wide.gather(1, target[:, None])[:, 0]
        yield Row(
            f"cross-entropy forward, {columns} wide", x.nbytes,
            {"ours": lambda x=x, t=target: entropy.cross_entropy_fwd(x, t, return_lse=True),
             "torch": lambda x=x, t=target: (F.cross_entropy(x, t, reduction="none"),),
             "copy": copies(x.nbytes)},
            (loss, lse), 1e-4,
        )  # fmt: skip
        leaf = x.detach().requires_grad_()
        out = F.cross_entropy(leaf, target, reduction="none")
        exact = torch.softmax(wide, -1)
        exact[torch.arange(rows, device=DEVICE), target] -= 1
        exact *= dloss[:, None]
        half = dloss.to(out.dtype)
        yield Row(
            f"cross-entropy backward, {columns} wide", 2 * x.nbytes,
            {"ours": lambda x=x, t=target, d=dloss, s=lse: (
                entropy.cross_entropy_bwd(x, t, d, s),),
             "torch": lambda o=out, i=leaf, d=half: torch.autograd.grad(
                 o, i, d, retain_graph=True),
             "copy": copies(2 * x.nbytes)},
            (exact,), 8e-3,
        )  # fmt: skip


def tops(shrink):
    x = normal(65536 // shrink, 1024, dtype=torch.float32)
    for k in (8, 32):
        yield Row(
            f"top {k} of 1024", x.nbytes,
            {"ours": lambda k=k: topk.topk_fwd(x, k)[:1], "torch": lambda k=k: torch.topk(x, k)[:1],
             "copy": copies(x.nbytes)},
            (torch.topk(x, k).values,), 3e-4,  # the client keeps the index in the last 10 bits
        )  # fmt: skip


def gemms(shrink):
    products = importlib.import_module("quack.gemm")
    n = 8192 // shrink
    a, b = normal(1, n, n), normal(1, n, n)
    exact = (a.float() @ b.float().mT,)
    for tile, cluster, pingpong in (
        ((128, 256), (2, 1), False),
        ((128, 192), (2, 1), True),
        ((128, 128), (1, 2), True),
    )[:GEMMS]:
        out = torch.full((1, n, n), float("nan"), device=DEVICE, dtype=BF16)

        def ours(out=out, tile=tile, cluster=cluster, pingpong=pingpong):
            products.gemm(a, b, out, None, None, *tile, *cluster, pingpong=pingpong)
            return (out,)

        yield Row(
            f"GEMM {n}^3, {tile}, clusters {cluster}{', in turns' * pingpong}", 2 * n**3,
            {"ours": ours, "cuBLAS": lambda: (torch.matmul(a, b.mT),)}, exact, 1e-2, "TFLOP/s",
        )  # fmt: skip


FAMILIES = (norms, softmaxes, entropies, tops, gemms)


def check(row):
    # What the client allocates is likely to be memory that holds NaNs now.
    spoiled = [torch.full_like(x, float("nan")) for x in row.exact for _ in range(2)]
    del spoiled
    begun = time.perf_counter()
    found = row.calls["ours"]()
    torch.cuda.synchronize()
    first = time.perf_counter() - begun
    worst = 0.0
    for one, exact in zip(found, row.exact, strict=True):
        error = ((one.float() - exact).abs().max() / exact.abs().max()).item()
        assert error <= row.allowed, f"the error is {error:.2e}, more than {row.allowed:.0e}"
        worst = max(worst, error)
    return worst, first


def timed(calls):
    times, host = {name: [] for name in calls}, {}
    for turn in range(ROUNDS + 2):
        for name, call in calls.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(20_000_000)  # longer than the host needs for the calls
            start.record()
            begun = time.perf_counter()
            for _ in range(CALLS):
                call()
            host.setdefault(name, []).append((time.perf_counter() - begun) / CALLS)
            stop.record()
            stop.synchronize()
            if turn >= 2:
                times[name].append(start.elapsed_time(stop) / 1e3 / CALLS)
    seconds = {name: statistics.median(each) for name, each in times.items()}
    return seconds, {name: statistics.median(each) for name, each in host.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--small", action="store_true", help="check sizes of a 32nd, without times")
    parser.add_argument("--gemms", type=int, default=3, help="so many configurations of the GEMM")
    parser.add_argument("--out")
    options = parser.parse_args()
    globals()["GEMMS"] = options.gemms
    begun, rows, failed = time.perf_counter(), [], 0
    print(torch.cuda.get_device_name(), "torch", torch.__version__, os.environ["CLIENTS"])
    for family in FAMILIES:
        if options.only not in family.__name__:
            continue
        made = family(32 if options.small else 1)
        while True:
            name = family.__name__
            try:
                row = next(made)
                name = row.name
                error, first = check(row)
                rates, host = {}, {}
                if not options.small:
                    scale = 1e12 if row.unit == "TFLOP/s" else 1e9
                    seconds, host = timed(row.calls)
                    rates = {k: row.work / s / scale for k, s in seconds.items()}
                told = ", ".join(
                    f"{rates['ours'] / rate:.3f} of {peer} ({rate:.0f})"
                    for peer, rate in rates.items()
                    if peer != "ours"
                )
                print(f"{name:<44} {rates.get('ours', 0):7.1f} {row.unit}: {told}; error "
                      f"{error:.1e}, first call {first:.2f} s, host "
                      f"{host.get('ours', 0) * 1e6:.0f} us ({host.get('torch', 0) * 1e6:.0f})",
                      flush=True)  # fmt: skip
                rows.append({"row": name, "unit": row.unit, "rates": rates, "error": error})
            except StopIteration:
                break
            except Exception as error:  # the others go on
                failed += 1
                rows.append({"row": name, "failure": repr(error)})
                print(f"{name} FAILED: {str(error)[:300]}", flush=True)
                traceback.print_exc(limit=-3)
            torch.cuda.empty_cache()
    print(f"{time.perf_counter() - begun:.0f} s, {failed} failed")
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
