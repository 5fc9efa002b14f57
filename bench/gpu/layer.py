"""`ops` of a transformer's layer but attention, against PyTorch eager and compiled, in one run.

    python bench/gpu/layer.py [--out rows.json] [--only TEXT ...]

Norms forward and backward, also with a residual, softmax, sampling (its error is the fraction of
draws that were to be left out), and gradients of `matmul`. Inputs are fresh random normal numbers;
results are compared with float64. Contenders take turns between CUDA
events, in rows of launches while the device is busy; medians. Times in us; GB/s of what is read
and written once; ratios of a contender's time to ours, above 1 where ours is faster. "host" is what
a call takes on the host, in us, of ours and the contenders, "device" what its kernels take
together, by CUPTI, kernels that overlap more than once: where the host takes longer, ratios are of
the host. "Python" counts launches from Python in ten of our calls, which should be none: why is
said before.
"""

import argparse
import json
import logging
import statistics
import sys
import time
from pathlib import Path

import torch
import torch._functorch.config
import torch.nn.functional as F

from basedsl.compiled import Compiled
from basedsl_cute import ops

ROUNDS, LAUNCHES = 11, 8
LONG = 5e-3  # seconds of a call from which fewer are enough
MOST_ERROR = 2e-2  # of bfloat16, relative to the largest magnitude


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, device="cuda", dtype=dtype)


def forward_rms(x, weight, residual):
    z = x + residual
    return F.rms_norm(z, weight.shape, weight, 1e-6), z


def norm_cases():
    for rows, columns in ((8192, 4096), (32768, 1024), (4096, 8192), (1024, 65536)):
        shape, size = f"{rows} x {columns} bf16", rows * columns * 2
        x, residual, grad = (normal(rows, columns) for _ in range(3))
        weight, bias = normal(columns), normal(columns)
        yield (
            f"rms_norm {shape}",
            2 * size,
            lambda x, w: ops.rms_norm(x, w),
            lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
            (x, weight),
        )
        yield (
            f"layer_norm {shape}",
            2 * size,
            lambda x, w, b: ops.layer_norm(x, w, b),
            lambda x, w, b: F.layer_norm(x, w.shape, w, b),
            (x, weight, bias),
        )
        yield (
            f"rms_norm + residual {shape}",
            4 * size,
            lambda x, w, r: ops.rms_norm(x, w, residual=r),
            forward_rms,
            (x, weight, residual),
        )
        yield (
            f"layer_norm backward {shape}",
            3 * size,
            backward(lambda x, w, b: ops.layer_norm(x, w, b), grad),
            backward(lambda x, w, b: F.layer_norm(x, w.shape, w, b), grad),
            (x, weight, bias),
        )
        yield (
            f"rms_norm backward {shape}",
            3 * size,
            backward(lambda x, w: ops.rms_norm(x, w), grad),
            backward(lambda x, w: F.rms_norm(x, w.shape, w, 1e-6), grad),
            (x, weight),
        )


class backward:
    """The gradients of a function by its inputs; the forward pass runs once for given inputs."""

    def __init__(self, function, grad):
        self.function, self.grad, self.kept = function, grad, None

    def __call__(self, *inputs):
        key = tuple(x.data_ptr() for x in inputs)
        if self.kept is None or self.kept[0] != key:
            leaves = [x.detach().requires_grad_() for x in inputs]
            self.kept = key, leaves, self.function(*leaves)
        _, leaves, y = self.kept
        return torch.autograd.grad(y, leaves, self.grad.to(y.dtype), retain_graph=True)


def compiled(function):
    """The function, or that whose gradients it computes, by PyTorch's compiler."""
    if isinstance(function, backward):
        return backward(torch.compile(function.function), function.grad)
    return torch.compile(function)


def turned(x, cos, sin):
    one, other = x.chunk(2, -1)
    c, s = cos[:, None], sin[:, None]
    return torch.cat((one * c - other * s, other * c + one * s), -1)


def softmax_cases():
    for rows, columns in ((8192, 4096), (4096, 32768), (256, 131072), (256, 262144)):
        shape, size = f"{rows} x {columns} bf16", rows * columns * 2
        x, grad = normal(rows, columns), normal(rows, columns)
        yield f"softmax {shape}", 2 * size, ops.softmax, lambda x: x.softmax(-1), (x,)
        yield (
            f"softmax backward {shape}",
            3 * size,
            backward(ops.softmax, grad),
            backward(lambda x: x.softmax(-1), grad),
            (x,),
        )


def sampling_cases():
    for rows, columns in ((8, 128256), (256, 128256)):
        shape = f"{rows} x {columns} bf16"
        x = normal(rows, columns) * 3
        size = x.numel() * 2
        yield (
            f"topk 50 {shape}",
            size,
            lambda x: ops.topk(x, 50).values,
            lambda x: x.topk(50).values,
            (x,),
        )
        yield f"sample top-k 50, top-p 0.9 {shape}", size, Draws(50, 0.9), sampled(50, 0.9), (x,)
        yield f"sample top-p 0.9 {shape}", size, Draws(0, 0.9), sampled(0, 0.9), (x,)
        yield f"sample {shape}", size, Draws(0, 1.0), sampled(0, 1.0), (x,)


class Draws:
    """Calls of `sample`, each with another offset."""

    def __init__(self, top_k, top_p):
        self.options = {"top_k": top_k, "top_p": top_p, "temperature": 0.8}
        self.offset = 0

    def __call__(self, x):
        self.offset += 1
        return ops.sample(x, seed=1, offset=self.offset, **self.options)

    def error(self, x):
        """The fraction of draws that are not among the elements to keep; 1 if draws repeat."""
        kept = kept_probabilities(x.double(), self.options["top_k"], self.options["top_p"] + 1e-5)
        draws = self(x)
        # Elements equal to the last one that a sort keeps are kept too.
        least = x.masked_fill(kept == 0, float("inf")).amin(-1)
        missed = (x.gather(-1, draws[:, None])[:, 0] < least).double().mean().item()
        return max(missed, float(torch.equal(draws, self(x))))


def kept_probabilities(x, top_k, top_p):
    """Probabilities at temperature 0.8, with 0 for what is not kept, as PyTorch programs do it."""
    x = x.float() / 0.8 if x.dtype != torch.float64 else x / 0.8
    if top_k:
        x = x.masked_fill(x < x.topk(top_k).values[:, -1:], float("-inf"))
    if top_p < 1:
        ordered, places = x.sort(descending=True)
        p = ordered.softmax(-1)
        ordered = ordered.masked_fill(p.cumsum(-1) - p >= top_p, float("-inf"))
        x = torch.full_like(x, float("-inf")).scatter(-1, places, ordered)
    return x.softmax(-1)


def sampled(top_k, top_p):
    return lambda x: kept_probabilities(x, top_k, top_p).multinomial(1)[:, 0]


def layer_cases():
    x, angles = normal(4, 4096, 32, 128), torch.randn(4096, 64, device="cuda")
    yield (
        "rotary 4 x 4096 x 32 x 128 bf16",
        2 * x.numel() * 2,
        lambda x, c, s: ops.rotary(x, c, s),
        lambda x, c, s: turned(x.float(), c, s).to(x.dtype),
        (x, angles.cos(), angles.sin()),
    )
    x, gate, up = normal(8192, 4096), normal(4096, 14336) / 64, normal(4096, 14336) / 64
    yield (
        "gated_linear 8192 x 14336 x 4096 bf16",
        0,
        lambda x, g, u: ops.gated_linear(x, g, u),
        lambda x, g, u: F.silu(x @ g) * (x @ u),
        (x, gate, up),
    )
    grad = normal(8192, 14336)
    yield (
        "gated_linear backward 8192 x 14336 x 4096 bf16",
        0,
        backward(lambda x, g, u: ops.gated_linear(x, g, u), grad),
        backward(lambda x, g, u: F.silu(x @ g) * (x @ u), grad),
        (x, gate, up),
    )


def loss_cases():
    targets = torch.randint(0, 128256, (8192,), device="cuda")
    x, weight = normal(8192, 4096), normal(128256, 4096) / 64
    yield (
        "linear_cross_entropy 8192 x 128256 x 4096 bf16",
        0,
        gradients(lambda x, w: ops.linear_cross_entropy(x, w, targets)),
        gradients(lambda x, w: F.cross_entropy(F.linear(x, w).float(), targets)),
        (x, weight),
    )


def gradients(function):
    def call(*inputs):
        leaves = [x.detach().requires_grad_() for x in inputs]
        loss = function(*leaves)
        return (loss.detach(), *torch.autograd.grad(loss, leaves))

    return call


def matmul_cases():
    for rows, inner, columns in ((8192, 4096, 4096), (4096, 4096, 16384)):
        a, b, bias = normal(rows, inner), normal(columns, inner) * inner**-0.5, normal(columns)
        grad = normal(rows, columns)
        yield (
            f"matmul gelu backward {rows} x {columns} x {inner} bf16",
            0,
            backward(lambda a, b, c: ops.matmul(a, b.mT, bias=c, activation="gelu"), grad),
            backward(lambda a, b, c: F.gelu(F.linear(a, b, c)), grad),
            (a, b, bias),
        )


def error(found, wanted):
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        scale = max(float(other.abs().max()), 1e-9)
        gap = float((one.double() - other).abs().max()) / scale
        worst = max(worst, gap if gap == gap else 9.0)
    return worst


def timed(contenders, inputs):
    busy = torch.empty(2**28, device="cuda", dtype=torch.uint8)
    times = {name: [] for name in contenders}
    is_long = max(seconds_of_a_call(f, inputs) for f in contenders.values()) > LONG
    rounds, launches = (5, 2) if is_long else (ROUNDS, LAUNCHES)
    for _ in range(rounds):
        for name, function in contenders.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            busy.fill_(1)
            busy.fill_(2)
            begin.record()
            for _ in range(launches):
                function(*inputs)
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / launches)
    return {name: statistics.median(found) for name, found in times.items()}


def seconds_of_a_call(function, inputs):
    """Seconds until a call's result is there."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    function(*inputs)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def on_the_host(function, inputs, calls=30):
    """Microseconds of a call on the host, while the device works on earlier calls."""
    found = []
    calls = 3 if seconds_of_a_call(function, inputs) > LONG else calls
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            function(*inputs)
        found.append((time.perf_counter() - begin) / calls * 1e6)
    torch.cuda.synchronize()
    return min(found)


def on_the_device(function, inputs, calls=5):
    """Microseconds of a call's kernels, copies and fills, without the gaps between them."""
    calls = 2 if seconds_of_a_call(function, inputs) > LONG else calls
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(calls):
            function(*inputs)
        torch.cuda.synchronize()
    return sum(event.self_device_time_total for event in profile.key_averages()) / calls


class Nothing(torch.autograd.Function):
    """A function whose backward pass does nothing but return new tensors."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return tuple(x.new_empty(x.shape) for x in ctx.saved_tensors)


def least_host_time():
    """Microseconds of the host for the backward pass of a function of Python that does nothing."""
    x, weight, bias = normal(64, 256), normal(256), normal(256)
    return on_the_host(backward(Nothing.apply, normal(64, 256)), (x, weight, bias), calls=300)


def count_python():
    """Make a list of compiled functions that grows with each call of one from Python."""
    ran, plain = [], Compiled._call

    def counted(self, *arguments, **named):
        ran.append(self)
        return plain(self, *arguments, **named)

    Compiled._call = counted  # of those that are made from now on
    return ran


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--eager", action="store_true", help="without PyTorch's compiler")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device here")
        return 0
    log = logging.getLogger("basedsl.native_call")
    log.addHandler(logging.StreamHandler(sys.stdout))
    log.setLevel("DEBUG")
    ran = count_python()
    torch.manual_seed(int(time.time()))
    torch._functorch.config.donated_buffer = False  # of backward passes that run again
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"a backward pass in Python that does nothing: host {least_host_time():.0f}")
    rows, failed = [], False
    for name, moved, ours, peer, inputs in (
        *norm_cases(),
        *softmax_cases(),
        *sampling_cases(),
        *layer_cases(),
        *loss_cases(),
        *matmul_cases(),
    ):
        if not any(text in name for text in options.only):
            continue
        is_large = sum(x.numel() for x in inputs) > 3e8  # float64 products would not fit
        wide = [x.float() if is_large else x.double() for x in inputs]
        found = ours(*inputs)
        is_draw = isinstance(ours, Draws)
        wrong = ours.error(*inputs) if is_draw else error(found, peer(*wide))
        row = {"name": name, "error": wrong}
        if isinstance(peer, backward):
            peer.kept = None
        del wide, found
        contenders = {"ours": ours, "eager": peer}
        if not options.eager:
            contenders["compiled"] = compiled(peer)
        for contender, function in list(contenders.items()):
            try:
                function(*inputs)
            except Exception as problem:  # the compiler of PyTorch 2.11 fails on sampling
                if contender == "ours":
                    raise
                print(f"{contender}: {str(problem).splitlines()[0][:90]}")
                del contenders[contender]
        row.update(timed(contenders, inputs))
        row["host"] = {k: on_the_host(f, inputs) for k, f in contenders.items()}
        row["device"] = {k: on_the_device(f, inputs) for k, f in contenders.items()}
        ran.clear()
        for _ in range(2 if row["ours"] > LONG * 1e6 else 10):
            ours(*inputs)
        row["python"] = len(ran)
        failed = failed or row["error"] > MOST_ERROR
        speed = f"{moved / row['ours'] / 1e3:6.0f} GB/s" if moved else " " * 11
        ratios = "  ".join(f"{k} {row[k] / row['ours']:.2f}" for k in contenders if k != "ours")
        host, device = (
            ", ".join(f"{time:.0f}" for time in row[kind].values()) for kind in ("host", "device")
        )
        print(
            f"{name:<44} {row['ours']:8.1f} us {speed}  {ratios}  error {row['error']:.1e}  "
            f"host {host}  device {device}  Python {row['python']}",
            flush=True,
        )
        rows.append(row)
        if options.out:
            Path(options.out).write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
