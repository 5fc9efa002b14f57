"""Errors of `ops.attention` and its gradients against float64, beside cuDNN's on the same inputs.

    python bench/gpu/attention_errors.py [--draws 8] [--only TEXT ...] [--out rows.json]

For each shape of `attention.py`, in Float16 and BFloat16, and each draw of random normal inputs:
the root of the mean squared error and the largest error of the same queries of the same heads, over
the root of the mean square and over the largest magnitude of the exact result; of gradients those
of one head of keys and one of its query heads, the worst of dQ, dK and dV. Printed are ours over
cuDNN's: the geometric mean over the draws, and the largest; "ours" is our root of the mean squared
error.
"""

import argparse
import json
import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from attention import SHAPES, inputs, name_of, sdpa
from attention_exact import exact, gradients
from torch.nn.attention import SDPBackend

from basedsl_cute.ops import attention, attention_backward

QUERIES, HEADS = 512, 4  # of a draw that are compared


def main() -> int:
    options = arguments()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; ours over cuDNN's")
    print(f"{'':<48} {'ours':>8} {'rms':>6} {'worst':>6} {'max':>6} {'worst':>6}")
    rows = []
    for shape in SHAPES:
        for dtype in (torch.float16, torch.bfloat16):
            for kind, errors in (("forward", forward), ("backward", backward)):
                name = f"{kind} {name_of(shape)} {str(dtype)[6:]}"
                if options.only and not any(text in name for text in options.only):
                    continue
                draws = options.draws if kind == "forward" else max(2, options.draws // 4)
                found = [errors(shape, dtype) for _ in range(draws)]
                rows.append({"name": name, "errors": found})
                print(line(name, found), flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--out")
    return parser.parse_args()


def line(name, draws):
    """A row as text: `draws` has pairs of errors, ours and cuDNN's."""
    by_kind = [[ours[i] / theirs[i] for ours, theirs in draws] for i in (0, 1)]
    shown = [x for each in by_kind for x in (statistics.geometric_mean(each), max(each))]
    ours = statistics.mean(draw[0][0] for draw in draws)
    return f"{name:<48} {ours:8.1e} " + " ".join(f"{x:6.3f}" for x in shown)


def errors_of(found, wanted):
    """The root of the mean squared error and the largest error, each relative."""
    off = found.double() - wanted
    root = off.square().mean().sqrt() / wanted.square().mean().sqrt()
    largest = off.abs().max() / wanted.abs().max()
    return [float(x.nan_to_num(torch.inf)) for x in (root, largest)]


def forward(shape, dtype):
    q, k, v = inputs(shape, dtype)
    causal = shape[-1]
    ours = attention(q, k, v, causal=causal, out=torch.full_like(q, torch.nan))
    theirs = sdpa(q, k, v, causal, SDPBackend.CUDNN_ATTENTION)().transpose(1, 2)
    picked = []
    for _ in range(HEADS):
        batch, head = random.randrange(q.shape[0]), random.randrange(q.shape[2])
        rows = torch.randperm(q.shape[1], device="cuda")[:QUERIES]
        wanted = exact(q, k, v, batch, head, rows, causal)[1]
        picked.append((ours[batch, rows, head], theirs[batch, rows, head], wanted))
    ours, theirs, wanted = (torch.stack(each) for each in zip(*picked, strict=True))
    return errors_of(ours, wanted), errors_of(theirs, wanted)


def backward(shape, dtype):
    q, k, v = inputs(shape, dtype)
    causal = shape[-1]
    grad = torch.randn_like(q)
    out, lse = attention(q, k, v, causal=causal, return_lse=True)
    ours = attention_backward(grad, q, k, v, out, lse, causal=causal)
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    made = sdpa(*leaves, causal, SDPBackend.CUDNN_ATTENTION)()
    theirs = torch.autograd.grad(made, leaves, grad.transpose(1, 2))
    batch, key_head = random.randrange(q.shape[0]), random.randrange(k.shape[2])
    wanted = gradients(grad, q, k, v, batch, key_head, causal)
    heads = (key_head * (q.shape[2] // k.shape[2]), key_head, key_head)
    both = []
    for results in (ours, theirs):
        each = [
            errors_of(x[batch, :, head], y)
            for x, y, head in zip(results, wanted, heads, strict=True)
        ]
        both.append([max(column) for column in zip(*each, strict=True)])
    return tuple(both)


if __name__ == "__main__":
    sys.exit(main())
