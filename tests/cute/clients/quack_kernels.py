"""Kernels of `quack-kernels` on the simulator against PyTorch, as their own entry points make them.

    CLIENTS=FOLDER CUTE_DSL_ARCH=sim basedsl run --as cutlass quack_kernels.py CHECK

FOLDER has the unpacked wheel of `pip download --no-deps quack-kernels==VERSION`; PyTorch for the
CPU is installed. Prints `CHECK ok ERROR`, the largest absolute error.

The simulator's device is the CPU, and the client asks for a GPU: its tensors say that they are on
one, its device has the number of multiprocessors of an H100, and its operations are called without
PyTorch's dispatcher, which would look for a GPU.
"""

import importlib
import importlib.util
import inspect
import os
import sys
import types

sys.path.insert(0, os.environ["CLIENTS"])

import torch

torch.Tensor.is_cuda = property(lambda self: True)
torch.library.custom_op = (
    lambda name, fn=None, device_types=None, make=torch.library.custom_op, **to: make(
        name, fn, **to
    )  # for the CPU too
)
torch.cuda.get_device_capability = lambda device=None: (9, 0)
torch.cuda.current_stream = lambda device=None: type("Stream", (), {"cuda_stream": 0})()
torch.cuda.get_device_properties = lambda device=None: type(
    "Properties", (), {"multi_processor_count": 4, "major": 9, "minor": 0}
)()

# Of Triton later versions use the timer of their tuner; PyTorch for the CPU comes without it.
if importlib.util.find_spec("triton") is None:
    import torch._dynamo  # which looks for Triton too

    triton = sys.modules["triton"] = types.ModuleType("triton")
    cache = types.SimpleNamespace(FileCacheManager=object)
    triton.runtime = types.SimpleNamespace(cache=cache)

# The package has functions of these names too.
norm, softmax, entropy, topk = (
    importlib.import_module(f"quack.{name}")
    for name in ("rmsnorm", "softmax", "cross_entropy", "topk")
)
KINDS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
# What rounding to the type of the result and another order of additions may do.
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-4}


def plain(operation):
    """The function below an operation of PyTorch, with its own cache of compiled functions."""
    function = getattr(operation, "_init_fn", operation)
    if function is not operation:
        function.compile_cache = getattr(operation, "compile_cache", {})
    return function


def difference(found, wanted):
    return (found.float() - wanted.float()).abs().max().item()


def rmsnorm(rows, columns, kind):
    x, w = torch.randn(rows, columns).to(kind), torch.randn(columns)
    out, rstd = torch.empty_like(x), torch.empty(rows)
    plain(norm._rmsnorm_fwd)(x, w, out, None, rstd, None, None, None, 1e-6, False)
    wide = x.float()
    scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6)
    return max(difference(out, (wide * scale * w).to(kind)), difference(rstd, scale[:, 0]))


def rmsnorm_backward(rows, columns, kind):
    x, w = torch.randn(rows, columns).to(kind), torch.randn(columns)
    dout = torch.randn(rows, columns).to(kind)
    leaves = x.float().clone().requires_grad_(), w.clone().requires_grad_()
    rstd = torch.rsqrt((leaves[0] ** 2).mean(-1) + 1e-6)
    (leaves[0] * rstd[:, None] * leaves[1]).backward(dout.float())
    for name, operation in list(vars(norm).items()):
        if hasattr(operation, "_init_fn"):
            setattr(norm, name, plain(operation))
    dx, dw, *_ = norm.rmsnorm_bwd(x, w, dout, rstd.detach())
    return max(difference(dx, leaves[0].grad), difference(dw, leaves[1].grad) / max(1, rows) ** 0.5)


def layernorm(rows, columns, kind):
    x, w = torch.randn(rows, columns).to(kind), torch.randn(columns)
    norm._rmsnorm_fwd = plain(norm._rmsnorm_fwd)
    out = norm.layernorm_fwd(x, w, eps=1e-6)
    return difference(out, torch.nn.functional.layer_norm(x.float(), (columns,), w, eps=1e-6))


def softmax_forward(rows, columns, kind):
    x = torch.randn(rows, columns).to(kind)
    out = torch.empty_like(x)
    plain(softmax._softmax_fwd)(x, out)
    return difference(out, torch.softmax(x.float(), -1))


def softmax_backward(rows, columns, kind):
    y = torch.softmax(torch.randn(rows, columns), -1).to(kind)
    dy = torch.randn(rows, columns).to(kind)
    dx = torch.empty_like(y)
    plain(softmax._softmax_backward)(dy, y, dx)
    wide = y.float(), dy.float()
    return difference(dx, wide[0] * (wide[1] - (wide[0] * wide[1]).sum(-1, keepdim=True)))


def cross_entropy(rows, columns, kind):
    x, target = torch.randn(rows, columns).to(kind), torch.randint(0, columns, (rows,))
    loss, lse = torch.empty(rows), torch.empty(rows)
    forward = plain(entropy.cross_entropy_fwd_out)
    given = {"x": x, "target": target, "loss": loss, "lse": lse, "ignore_index": -100}
    forward(**{name: given.get(name) for name in inspect.signature(forward).parameters})
    wanted = torch.nn.functional.cross_entropy(x.float(), target, reduction="none")
    return max(difference(loss, wanted), difference(lse, torch.logsumexp(x.float(), -1)))


def cross_entropy_backward(rows, columns, kind):
    x, target = torch.randn(rows, columns).to(kind), torch.randint(0, columns, (rows,))
    dloss = torch.randn(rows)
    lse = torch.logsumexp(x.float(), -1)
    dx = torch.empty_like(x)
    plain(entropy.cross_entropy_bwd_out)(x, target, dloss, lse, dx, ignore_index=-100)
    wanted = torch.softmax(x.float(), -1)
    wanted[torch.arange(rows), target] -= 1
    return difference(dx, wanted * dloss[:, None])


def top(rows, columns, kind, k=8):
    x = torch.randperm(rows * columns).reshape(rows, columns).to(kind) / 64
    values, indices = torch.empty(rows, k).to(kind), torch.empty(rows, k, dtype=torch.int32)
    plain(topk._topk_fwd)(x, k, False, values, indices)
    wanted = torch.topk(x, k)
    assert (indices == wanted.indices).all()
    return difference(values, wanted.values)


def gemm(rows, columns, kind, pingpong=False, persistent=True, cluster=(1, 1)):
    products = importlib.import_module("quack.gemm")
    k = 128
    a, b = torch.randn(1, rows, k).to(kind), torch.randn(1, columns, k).to(kind)
    d = torch.empty(1, rows, columns).to(kind)
    how = {"pingpong": pingpong, "persistent": persistent}
    products.gemm(a, b, d, None, None, 128, 128, *cluster, **how)
    return difference(d, (a.float() @ b.float().mT).to(kind)) / k**0.5


def gemm_pingpong(rows, columns, kind):
    return gemm(rows, columns, kind, pingpong=True)


def gemm_cluster(rows, columns, kind):
    return gemm(rows, columns, kind, cluster=(2, 1))


def gemm_grid(rows, columns, kind):
    return gemm(rows, columns, kind, persistent=False)


CHECKS = {
    "gemm": (gemm, 200, 264, "f16"),
    "gemm-pingpong": (gemm_pingpong, 256, 256, "bf16"),
    "gemm-cluster": (gemm_cluster, 256, 128, "f16"),
    "gemm-grid": (gemm_grid, 128, 256, "bf16"),
    "rmsnorm": (rmsnorm, 8, 256, "f16"),
    "rmsnorm-bf16": (rmsnorm, 4, 1024, "bf16"),
    "rmsnorm-f32": (rmsnorm, 2, 4096, "f32"),
    "rmsnorm-cluster": (rmsnorm, 1, 65536, "bf16"),
    "rmsnorm-backward": (rmsnorm_backward, 8, 256, "f16"),
    "rmsnorm-backward-f32": (rmsnorm_backward, 6, 512, "f32"),
    "layernorm": (layernorm, 8, 256, "f16"),
    "layernorm-f32": (layernorm, 4, 1024, "f32"),
    "softmax": (softmax_forward, 8, 512, "f16"),
    "softmax-f32": (softmax_forward, 4, 4096, "f32"),
    "softmax-backward": (softmax_backward, 8, 512, "f32"),
    "cross-entropy": (cross_entropy, 8, 512, "f32"),
    "cross-entropy-wide": (cross_entropy, 2, 65536, "bf16"),
    "cross-entropy-backward": (cross_entropy_backward, 8, 512, "f32"),
    "top-k": (top, 8, 256, "f32"),
}


def main(name):
    torch.manual_seed(0)
    check, rows, columns, kind = CHECKS[name]
    error = check(rows, columns, KINDS[kind])
    assert error <= TOLERANCE[KINDS[kind]], f"{name}: the largest error is {error}"
    print(name, "ok", error)


if __name__ == "__main__":
    for one in sys.argv[1:] or CHECKS:
        main(one)
