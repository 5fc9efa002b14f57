"""`ops.ampere.gemm` and `gemm_tma` (mma.sync), `ops.ampere.sgemm` (CUDA cores), a call of
`ops.matmul`, against cuBLAS.

    python bench/gpu/ampere_gemm.py [--out rows.json] [--only warp|simt|calls] [--config "dict()"]

Inputs are fresh random normal numbers; outputs are filled with NaN before the checked call and
compared with float64. They are timed as in `gemm.py`: launches in a row for 10 ms, contenders in
turns, medians; "alone" is of launches timed one by one. The mma.sync kernels, fed by TMA and by
cp.async, are also compared with the Hopper kernel: the goal is 0.75 of it at 4096^3. `sgemm` has a
goal of 0.93 of cuBLAS without TF32. Calls are measured by what the host takes for one of 200 small
products.
"""

import argparse
import json
import statistics
import sys
import time
from functools import partial
from pathlib import Path

from gemm import timed

WARP_SHAPES = [
    ("float16", "kk", (4096, 4096, 4096)),
    ("float16", "kn", (4096, 4096, 4096)),
    ("float16", "kk", (8192, 8192, 8192)),
    ("float16", "kk", (2048, 2048, 2048)),
    ("float16", "kk", (8192, 8192, 1024)),
    ("bfloat16", "kk", (4096, 4096, 4096)),
    ("float8_e4m3fn", "kk", (4096, 4096, 4096)),
    ("int8", "kk", (4096, 4096, 4096)),
    ("float32", "kk", (4096, 4096, 4096)),  # as TFloat32
]
SIMT_SHAPES = [(order, (n, n, n)) for n in (4096, 8192) for order in ("kn", "kk", "mn", "mk")]
RAGGED = [(1000, 776, 528), (128, 256, 64), (130, 1032, 24)]


def main():
    options = arguments()
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(int(time.time()))
    print(torch.cuda.get_device_name(0))
    rows = []
    if options.only in (None, "warp"):
        rows += warp(torch, options)
    if options.only in (None, "simt"):
        rows += simt(torch, options)
    if options.only in (None, "calls"):
        rows += calls(torch)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    wrong = [row for row in rows if row.get("error", 0) >= 1]
    return 1 if wrong else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", choices=("warp", "simt", "calls"))
    parser.add_argument("--config", help="arguments of Config, as Python: dict(stages=3)")
    return parser.parse_args()


# Tensor cores ------------------------------------------------------------------------------------


def warp(torch, options):
    from basedsl_cute.ops import matmul
    from basedsl_cute.ops.ampere import gemm as ampere_gemm
    from basedsl_cute.ops.ampere import gemm_tma

    header = "TFLOP/s  cuBLAS   ratio  hopper   ratio   alone  error  kernel"
    print(f"\nmma.sync                 {'shape':<18} {header}")
    kinds = {"warp-tma": gemm_tma, "warp": ampere_gemm}
    rows = []
    for dtype, order, shape in WARP_SHAPES:
        m, n, k = shape
        width = torch.empty(0, dtype=getattr(torch, dtype)).itemsize * 8
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        a, b, out = operands(torch, dtype, order, shape)
        tf32 = dtype == "float32"
        contenders, configs, errors = {}, {}, {}
        for name, kind in kinds.items():
            if options.config:
                cfg = kind.Config(**eval(options.config))
            else:
                cfg = kind.choose_config(*shape, width, processors, 227 * 1024)
            once = partial(matmul, a, b, out=out, config=cfg, tf32=True)
            contenders[name], configs[name] = once, cfg
            once()
            errors[name] = checked(torch, a, b, out, tf32)
            out.fill_(float("nan") if out.is_floating_point() else -7)
        contenders["hopper"] = partial(matmul, a, b, out=out, tf32=True)
        contenders["cublas"] = peer(torch, a, b, dtype)
        found = timed(contenders, 2 * m * n * k, (13, 20, 0))
        for name, cfg in configs.items():
            speeds = found | {f"ours{x}": found[f"{name}{x}"] for x in ("", "_alone")}
            row = {"kernel": name, "dtype": dtype, "order": order, "shape": shape}
            row |= {"error": errors[name], "config": str(cfg), "resources": resources(cfg)} | speeds
            rows.append(row)
            feed = "TMA" if name == "warp-tma" else "cp.async"
            print(
                f"{dtype:<14}{order} {feed:<8} {'x'.join(map(str, shape)):<18} "
                f"{speeds['ours']:7.1f} {ratio(speeds, 'cublas')} {ratio(speeds, 'hopper')} "
                f"{speeds['ours_alone'] / speeds['hopper_alone']:7.3f} {errors[name]:6.3f}  "
                f"{row['resources']}",
                flush=True,
            )
    for name, kind in kinds.items():
        cfg = kind.Config((64, 128, 64), (2, 2), 3)
        for shape in RAGGED:
            a, b, out = operands(torch, "float16", "kk", shape)
            matmul(a, b, out=out, config=cfg)
            error = checked(torch, a, b, out)
            rows.append({"kernel": name, "shape": shape, "error": error})
            print(f"{name:<13} ragged {'x'.join(map(str, shape)):<21} error {error:.3f}")
    return rows


def ratio(speeds, name):
    found = speeds.get(name)
    return f"{found:7.1f} {speeds['ours'] / found:7.3f}" if found else "      -       -"


def peer(torch, a, b, dtype):
    if dtype == "float8_e4m3fn":
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.float16)
    if dtype == "int8":
        return lambda: torch._int_mm(a, b)

    def product():
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.matmul(a, b)
        torch.backends.cuda.matmul.allow_tf32 = False

    return product


# CUDA cores --------------------------------------------------------------------------------------


def simt(torch, options):
    from basedsl_cute.ops import matmul
    from basedsl_cute.ops.ampere import sgemm

    print(f"\nsgemm      {'shape':<18} TFLOP/s  cuBLAS   ratio   error  kernel")
    rows = []
    for order, shape in SIMT_SHAPES:
        m, n, k = shape
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        cfg = sgemm.choose_config(m, n, processors, 1, (order[0] == "k", order[1] == "k"))
        if options.config:
            cfg = sgemm.Config(**eval(options.config))
        a, b, out = operands(torch, "float32", order, shape)
        contenders = {
            "ours": lambda: matmul(a, b, out=out, config=cfg),  # noqa: B023
            "cublas": lambda: torch.matmul(a, b, out=out),  # noqa: B023
        }
        contenders["ours"]()
        error = checked(torch, a, b, out)
        speeds = timed(contenders, 2 * m * n * k, (5, 0, 0))
        row = {"kernel": "simt", "order": order, "shape": shape, "error": error} | speeds
        row |= {"config": str(cfg), "resources": resources(cfg)}
        rows.append(row)
        print(
            f"float32  {order} {'x'.join(map(str, shape)):<18} {speeds['ours']:7.1f} "
            f"{ratio(speeds, 'cublas')}  {error:6.3f}  {row['resources']}",
            flush=True,
        )
    return rows


# Calls -------------------------------------------------------------------------------------------


def calls(torch):
    from basedsl_cute.ops import matmul

    a, b, out = (torch.randn(64, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    bias = torch.randn(64, device="cuda", dtype=torch.float16)
    linear = torch.nn.functional.linear
    print("\none call on the host, microseconds      ours   torch")
    rows = []
    for name, ours, peer_call in (
        ("64 x 64 x 64, a new result", lambda: matmul(a, b), lambda: torch.matmul(a, b)),
        ("out=", lambda: matmul(a, b, out=out), lambda: torch.matmul(a, b, out=out)),
        (
            "bias and relu",
            lambda: matmul(a, b, bias=bias, activation="relu"),
            lambda: torch.relu(linear(a, b.T, bias)),
        ),
    ):
        times = [on_host(torch, once) for once in (ours, peer_call)]
        print(f"{name:<36} {times[0]:7.2f} {times[1]:7.2f}")
        rows.append({"call": name, "ours": times[0], "torch": times[1]})
    return rows


def on_host(torch, once, count=200, rounds=15):
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            once()
        found.append((time.perf_counter() - start) / count * 1e6)
    torch.cuda.synchronize()
    return statistics.median(found)


# Shared ------------------------------------------------------------------------------------------


def operands(torch, dtype, order, shape):
    """A (M, K), B (K, N) and a C full of NaN. `order` is the contiguous modes: "kn" row-major
    arrays, "kk" a linear layer's input and weight.
    """
    m, n, k = shape
    kind = getattr(torch, dtype)
    a = random(torch, (m, k), kind) if order[0] == "k" else random(torch, (k, m), kind).T
    b = random(torch, (k, n), kind) if order[1] == "n" else random(torch, (n, k), kind).T
    out = {"float8_e4m3fn": torch.float16, "int8": torch.int32}.get(dtype, kind)
    nothing = float("nan") if out.is_floating_point else -7
    return a, b, torch.full((m, n), nothing, device="cuda", dtype=out)


def random(torch, shape, kind):
    if kind.is_floating_point:
        return torch.randn(shape, device="cuda").to(kind)
    return torch.randint(-100, 100, shape, device="cuda", dtype=kind)


def checked(torch, a, b, out, tf32=False):
    """The largest error in units of what rounding the result, float32 sums and, for TFloat32,
    dropping bits of the operands may cost; infinite for what is not written.
    """
    k = a.shape[1]
    worst = 0.0
    rows = max(1, 2**26 // max(out.shape[1], k))
    epsilon = torch.finfo(out.dtype).eps if out.dtype.is_floating_point else 0
    sums = 16 * k * 2**-25 + (8 * 2**-10 * k**0.5 if tf32 else 0)
    for first in range(0, out.shape[0], rows):
        part = slice(first, first + rows)
        exact = a[part].double() @ b.double()
        allowed = epsilon * exact.abs() + sums
        error = ((out[part].double() - exact).abs() / allowed).max().item()
        worst = max(worst, error) if error == error else float("inf")
    return worst


def resources(cfg):
    """Registers and spills of the kernel that was compiled with a configuration."""
    from basedsl_cute.ops.gemm import matmul as multiply

    found = [
        call
        for key, call in multiply._kernels.items()
        if type(key[0].config) is type(cfg)
        and (key[0].config.tile, key[0].config.stages) == (cfg.tile, cfg.stages)
    ]
    text = found[-1].stages.text("resources") if found else ""
    numbers = dict(
        part.split("=") for part in text.partition("(")[2].partition(")")[0].split(", ") if part
    )
    spills = f"{numbers.get('spill_stores', '?')}+{numbers.get('spill_loads', '?')}"
    blocks = cfg.blocks_per_sm
    return (
        f"{cfg.tile} {cfg.warps} s{cfg.stages}, {numbers.get('registers', '?')} registers, "
        f"{spills} bytes spilled, {cfg.threads // 32 * blocks} of 64 warps"
    )


if __name__ == "__main__":
    sys.exit(main())
