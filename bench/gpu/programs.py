"""Programs as users of CuTe write them (`tests/cute/programs`), at realistic sizes, in one run with
what they would use instead: cuBLAS, cuDNN, PyTorch's kernels, a copy of the same bytes.

    python bench/gpu/programs.py [--only NAME] [--out rows.json]

Inputs are random normal, outputs are filled with NaN before the checked call. Contenders take
turns; times are between two CUDA events around several launches that are queued while the device is
kept busy; medians. A goal is the figure of the same kind of program in another system on an H200.
"""

import argparse
import importlib.util
import json
import math
import operator
import statistics
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import basedsl_cute as cute
from basedsl_cute import ops
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.flash.attention import many_queries_config
from basedsl_cute.runtime import from_dlpack

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "cute"))

PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "cute" / "programs"
ROUNDS, CALLS = 11, 4
# Attention by mma.sync: rows, columns, warps, stages, then what `attention.Attention` is told.
TILES = (
    (128, 64, 4, 1, {}),
    (128, 64, 4, 1, {"slack": 0.0}),
    (128, 64, 4, 2, {}),
)

# Products of 8-bit floats with two accumulators, with scales: how they are made, and without.
SCALED = (
    {"overlap": True},
    {"groups": 3, "band": 4},
    {"groups": 3, "cluster": (1, 1), "band": 8},
)
PLAIN = (
    {"overlap": True},
    {"interval": 4},
    {"n": 192, "cluster": (2, 1), "band": 4},
    {"n": 192, "cluster": (2, 1), "band": 4, "interval": 4},
    {"n": 192, "cluster": (2, 1), "band": 2, "interval": 4},
    {"n": 192, "cluster": (2, 1), "band": 3, "interval": 2},
    {"groups": 3, "band": 4, "interval": 4},
)


@dataclass
class Case:
    """One problem: `work` in flops or bytes, calls without arguments by the contender's name."""

    name: str
    work: float
    unit: str
    calls: dict
    out: torch.Tensor
    exact: torch.Tensor
    allowed: float  # the largest error relative to the scale of the result
    goal: float | None = None
    seconds: dict = field(default_factory=dict)


def program(name):
    spec = importlib.util.spec_from_file_location(f"cute_program_{name}", PROGRAMS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def normal(*shape, dtype=torch.float16):
    return torch.randn(shape, device="cuda").to(dtype)


def poisoned(*shape, dtype=torch.float16):
    return torch.full(shape, float("nan"), device="cuda", dtype=dtype)


def dynamic(x, leading=None):
    return from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=leading)


def copies(size):
    """A copy that moves `size` bytes, reads and writes together."""
    source = torch.empty(size // 2, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def elementwise():
    import elementwise as example

    apply = program("elementwise_apply").elementwise_apply
    a, b = (normal(4096, 4096, dtype=torch.float32) for _ in range(2))
    c = poisoned(4096, 4096, dtype=torch.float32)
    size = 3 * a.nbytes
    static = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    tensors = [dynamic(x) for x in (a, b, c)]

    @cute.jit
    def add(a, b, c):
        example.elementwise_apply(lambda x, y: x + y, (a, b), c, (4, 32), 4)

    for text, (ta, tb, tc) in (("static", static), ("dynamic", tensors)):
        by_hand = cute.compile(apply, operator.add, [ta, tb], tc)
        by_copy = cute.compile(add, ta, tb, tc)
        for how, ours in (
            ("stores under `if`", lambda f=by_hand, x=ta, y=tb, z=tc: f([x, y], z)),
            ("copies with predicates", lambda f=by_copy, x=ta, y=tb, z=tc: f(x, y, z)),
        ):
            c.fill_(float("nan"))
            yield Case(
                f"elementwise add, {text}, {how}", size, "GB/s",
                {"ours": ours, "torch": lambda: torch.add(a, b, out=c), "copy": copies(size)},
                c, a + b, 1e-7, goal=size / 54.7e-6 / 1e9,
            )  # fmt: skip


def norms():
    module = program("rmsnorm")
    x, w = normal(16384, 8192), normal(8192)
    out = poisoned(16384, 8192)
    tensors = [from_dlpack(x, assumed_align=16).mark_compact_shape_dynamic(mode=0),
               from_dlpack(w, assumed_align=16),
               from_dlpack(out, assumed_align=16).mark_compact_shape_dynamic(mode=0)]  # fmt: skip
    compiled = cute.compile(module.RMSNorm(cute.Float16, 8192, threads=256), *tensors)
    size = 2 * x.nbytes
    yield Case(
        "norm with shuffles", size, "GB/s",
        {"ours": lambda: compiled(*tensors), "torch": lambda: F.rms_norm(x, w.shape, w, 1e-6),
         "copy": copies(size)},
        out, F.rms_norm(x.float(), w.shape, w.float(), 1e-6), 2e-3,
    )  # fmt: skip


def sgemm():
    module = program("simt_gemm")
    for text, n, static in (("static", 4096, True), ("tails", 4093, False)):
        a, b = (normal(n, n, dtype=torch.float32) for _ in range(2))
        c = poisoned(n, n, dtype=torch.float32)
        columns = [x.T for x in (a, b, c)]  # M and N are contiguous
        tensors = [from_dlpack(x, assumed_align=4 if n % 4 else 16) for x in columns]
        if not static:
            tensors = [t.mark_layout_dynamic(leading_dim=0) for t in tensors]
        gemm = module.SimtGemm((128, 128, 8), 3, 256, vector=4)
        compiled = cute.compile(gemm, *tensors, 1.0)
        ours = lambda compiled=compiled, tensors=tensors: compiled(*tensors, 1.0)  # noqa: E731
        peer = lambda a=a, b=b, c=c: torch.matmul(b.T, a, out=c)  # noqa: E731
        yield Case(
            f"CUDA-core GEMM {n}^3, {text}", 2 * n**3, "TFLOP/s",
            {"ours": ours, "cuBLAS": peer}, c, b.T @ a, 1e-5, goal=50,
        )  # fmt: skip


def hopper_gemms():
    classic, pingpong = program("hopper_classic"), program("hopper_pingpong")
    stream = cute.cuda.default_stream()
    n = 8192
    a, b, c = normal(n, n), normal(n, n), poisoned(n, n)
    exact = a.float() @ b.float().T
    tensors = [dynamic(x.unsqueeze(-1), 1) for x in (a, b, c)]
    blocks = torch.cuda.get_device_properties(0).multi_processor_count

    def case(name, compiled, *rest):
        return Case(
            f"{name}, fp16 {n}^3", 2 * n**3, "TFLOP/s",
            {"ours": lambda: compiled(*tensors, *rest),
             "cuBLAS": lambda: torch.matmul(a, b.T, out=c)}, c, exact, 2e-3,
        )  # fmt: skip

    for cluster in ((1, 1), (2, 1)):
        gemm = classic.HopperWgmmaGemmKernel(cute.Float32, (128, 256), cluster)
        yield case(f"Hopper GEMM, clusters {cluster}", cute.compile(gemm, *tensors, stream), stream)
    for text, tile, turns, swizzle in (
        ("in turns", (128, 128), True, 1),
        ("in turns, 64 x 256, bands of 4", (64, 256), True, 4),
        ("cooperative", (128, 256), False, 1),
    ):
        gemm = pingpong.HopperGemm(cute.Float32, tile, (2, 1), turns, swizzle)
        compiled = cute.compile(gemm, *tensors, blocks // 2, stream)
        yield case(f"persistent, warp-specialised, {text}", compiled, blocks // 2, stream)


def fp8():
    """Products of 8-bit floats with two accumulators, with scales and without, against cuBLAS."""
    simple, persistent = program("fp8_blockscale"), program("hopper_pingpong")
    stream = cute.cuda.default_stream()
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    for n in (4096, 8192):
        a, b = (normal(n, n).to(torch.float8_e4m3fn) for _ in range(2))
        sa = torch.rand(n, n // 128, device="cuda") + 0.5
        sb = torch.rand(n // 128, n // 128, device="cuda") + 0.5
        c = poisoned(n, n, dtype=torch.bfloat16)

        def bytes_of(x):
            tensor = from_dlpack(x.view(torch.uint8), assumed_align=16)
            tensor.element_type = cute.Float8E4M3FN
            return tensor.mark_layout_dynamic(leading_dim=1)

        one = torch.ones((), device="cuda")
        wide = [x.float() for x in (a, b)]
        exact = (wide[0] * sa.repeat_interleave(128, 1)) @ (
            wide[1] * sb.repeat_interleave(128, 0).repeat_interleave(128, 1)
        ).T
        peers = {
            "cuBLAS, one scale": lambda a=a, b=b, c=c, one=one: torch._scaled_mm(
                a, b.T, one, one, out_dtype=c.dtype
            )
        }
        by_column = sa.T.contiguous().T
        scaled = lambda a=a, b=b, c=c, s=by_column, t=sb: torch._scaled_mm(  # noqa: E731
            a, b.T, s, t.T, out_dtype=c.dtype
        )
        try:
            scaled()
            peers["cuBLAS, these scales"] = scaled
        except (RuntimeError, ValueError) as error:
            print("cuBLAS, these scales:", str(error)[:200])
        if n == 4096:
            tensors = [bytes_of(a), bytes_of(b), dynamic(sa, 1), from_dlpack(sb), dynamic(c, 1)]
            compiled = cute.compile(simple.WgmmaFp8(stages=4), *tensors)
            ours = lambda f=compiled, x=tensors: f(*x)  # noqa: E731
            yield Case(
                f"fp8 with two accumulators, one warp group, {n}^3", 2 * n**3, "TFLOP/s",
                {"ours": ours, **peers}, c, exact, 8e-3,
            )  # fmt: skip
        views = [bytes_of(a.unsqueeze(-1)), bytes_of(b.unsqueeze(-1)), dynamic(c.unsqueeze(-1), 1)]
        scales = dynamic(sa, 1), dynamic(sb, 1)
        # What the same schedule reaches without scales, in one accumulator.
        for tile in ((128, 128), (128, 256)):
            gemm = persistent.HopperGemm(cute.Float32, tile, (2, 1), False, 8)
            compiled = cute.compile(gemm, *views, blocks // 2, stream)
            ours = lambda f=compiled, x=views: f(*x, blocks // 2, stream)  # noqa: E731
            yield Case(
                f"fp8 without scales, resident, {tile}, {n}^3", 2 * n**3, "TFLOP/s",
                {"ours": ours, "cuBLAS, one scale": peers["cuBLAS, one scale"]}, c,
                wide[0] @ wide[1].T, 2e-2,
            )  # fmt: skip
        two = program("fp8_two_accumulators").TwoAccumulators
        given = from_dlpack(by_column).mark_layout_dynamic(leading_dim=0), scales[1]
        for text, kinds, args, result in (
            ("scaled", SCALED, (given,), exact),
            ("plain", PLAIN, (), wide[0] @ wide[1].T),
        ):
            for how in kinds:
                clusters = blocks // math.prod(how.get("cluster", (1, 2)))
                try:
                    compiled = cute.compile(two(**how), *views, clusters, stream, *args)
                except Exception as error:  # the others go on
                    print(how, "FAILED:", str(error)[:300])
                    continue
                c.fill_(float("nan"))
                ours = lambda f=compiled, x=(*views, clusters, stream, *args): f(*x)  # noqa: E731
                fast = lambda a=a, b=b, c=c, one=one: torch._scaled_mm(  # noqa: E731
                    a, b.T, one, one, out_dtype=c.dtype, use_fast_accum=True
                )
                yield Case(
                    f"fp8 with two accumulators, {text}, {how}, {n}^3", 2 * n**3, "TFLOP/s",
                    {"ours": ours, **peers, "cuBLAS, fast sums": fast}, c, result, 2e-2,
                )  # fmt: skip


def attentions():
    mma, hopper = program("attention"), program("hopper_fmha")
    stream = cute.cuda.default_stream()
    batches, length, heads, d = 4, 4096, 16, 128
    q, k, v = (normal(batches, length, heads, d) for _ in range(3))
    scale = 1 / math.sqrt(d)
    for causal, goal in ((False, 390), (True, 336)):
        work = 4 * batches * heads * length**2 * d / (2 if causal else 1)
        turned = [x.transpose(1, 2) for x in (q, k, v)]

        def sdpa(backend, turned=turned, causal=causal):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(*turned, is_causal=causal)

        peers = {
            "cuDNN": lambda sdpa=sdpa: sdpa(SDPBackend.CUDNN_ATTENTION),
            "flash": lambda sdpa=sdpa: sdpa(SDPBackend.FLASH_ATTENTION),
        }
        exact = torch.cat(
            [
                F.scaled_dot_product_attention(
                    *(x[i : i + 1].float() for x in turned), is_causal=causal
                )
                for i in range(batches)
            ]
        ).transpose(1, 2)
        text = ", causal" if causal else ""
        # (length, d, heads of all batches), as the program wants them.
        own = [x.transpose(1, 2).reshape(-1, length, d).contiguous() for x in (q, k, v)]
        out = torch.full_like(own[0], float("nan"))
        views = [
            from_dlpack(x.permute(1, 2, 0), assumed_align=16)
            .mark_layout_dynamic(leading_dim=1)
            .mark_compact_shape_dynamic(mode=1, stride_order=(2, 0, 1), divisibility=8)
            for x in (*own, out)
        ]
        kernels = {
            ", ".join([f"{rows}x{columns}", f"{stages} stages", *how]): mma.Attention(
                d, rows, columns, warps, causal, stages, **how
            )
            for rows, columns, warps, stages, how in TILES
        }
        for kind, kernel in kernels.items():
            compiled = cute.compile(kernel, *views, scale)
            ours = lambda compiled=compiled, views=views: compiled(*views, scale)  # noqa: E731
            out.fill_(float("nan"))
            yield Case(
                f"attention by mma.sync {kind}{text}",
                work, "TFLOP/s",
                {"ours": ours, **peers}, out.view(batches, heads, length, d).transpose(1, 2),
                exact, 2e-3, goal=goal,
            )  # fmt: skip
        result = poisoned(batches, length, heads, d)
        for config in (ampere.Config((64, 64)), many_queries_config(0 if causal else None)):
            ours = lambda c=config, r=result, m=causal: ops.attention(  # noqa: E731
                q, k, v, causal=m, out=r, config=c
            )
            result.fill_(float("nan"))
            yield Case(
                f"ops.attention by mma.sync, {config.tile}{text}", work, "TFLOP/s",
                {"ours": ours, **peers}, result, exact, 2e-3, goal=goal,
            )  # fmt: skip
        result = poisoned(batches, length, heads, d)
        tensors = [dynamic(x, 3) for x in (q, k, v, result)]
        fmha = hopper.HopperFmha(d, n_block=128, causal=causal, wgs=2)
        compiled = cute.compile(fmha, *tensors, None, scale, stream)
        ours = lambda f=compiled, t=tensors: f(*t, None, scale, stream)  # noqa: E731
        yield Case(
            f"attention by wgmma{text}", work, "TFLOP/s", {"ours": ours, **peers}, result, exact,
            2e-3,
        )  # fmt: skip


def narrow_heads():
    """`ops.attention` by mma.sync with heads of 64, by the tile of queries and keys."""
    q, k, v = (normal(4, 4096, 16, 64) for _ in range(3))
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    for causal in (False, True):
        exact = F.scaled_dot_product_attention(*(x.float() for x in turned), is_causal=causal)

        def flash(causal=causal):
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                return F.scaled_dot_product_attention(*turned, is_causal=causal)

        for tile in ((64, 64), (128, 96)):
            out = poisoned(*q.shape)
            config = ampere.Config(tile)
            ours = lambda c=config, r=out, m=causal: ops.attention(  # noqa: E731
                q, k, v, causal=m, out=r, config=c
            )
            yield Case(
                f"ops.attention by mma.sync, heads of 64, {tile}{', causal' * causal}",
                4 * 4 * 16 * 4096**2 * 64 / (2 if causal else 1), "TFLOP/s",
                {"ours": ours, "flash": flash}, out, exact.transpose(1, 2), 2e-3,
            )  # fmt: skip


FAMILIES = (elementwise, norms, sgemm, hopper_gemms, fp8, attentions, narrow_heads)


def check(case):
    case.calls["ours"]()
    torch.cuda.synchronize()
    error = (case.out.float() - case.exact).abs().max() / case.exact.abs().max()
    assert error <= case.allowed, f"the error is {error:.2e}, more than {case.allowed:.0e}"
    return error.item()


def timed(case):
    times = {name: [] for name in case.calls}
    for turn in range(ROUNDS + 2):
        for name, call in case.calls.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(1_000_000)
            start.record()
            for _ in range(CALLS):
                call()
            stop.record()
            stop.synchronize()
            if turn >= 2:
                times[name].append(start.elapsed_time(stop) / 1e3 / CALLS)
    return {name: statistics.median(each) for name, each in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--out")
    options = parser.parse_args()
    begun, rows = time.perf_counter(), []
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for family in FAMILIES:
        if options.only not in family.__name__:
            continue
        try:
            for case in family():
                row = {"case": case.name, "unit": case.unit, "goal": case.goal}
                rows.append(row)
                row["error"] = check(case)
                scale = 1e12 if case.unit == "TFLOP/s" else 1e9
                row["rates"] = {k: case.work / s / scale for k, s in timed(case).items()}
                ours = row["rates"]["ours"]
                told = ", ".join(
                    f"{ours / rate:.3f} of {name} ({rate:.0f})"
                    for name, rate in row["rates"].items()
                    if name != "ours"
                )
                goal = f", {ours / case.goal:.3f} of the goal" if case.goal else ""
                print(f"{case.name:<48} {ours:7.1f} {case.unit}: {told}{goal}", flush=True)
        except Exception as error:  # the others go on
            rows.append({"case": family.__name__, "failure": repr(error)})
            print(f"{family.__name__} FAILED: {str(error)[:300]}", flush=True)
            traceback.print_exc(limit=4)
        torch.cuda.empty_cache()
    print(f"{time.perf_counter() - begun:.0f} s")
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 1 if any("failure" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
