"""The host time of calls of `ops.attention`, beside PyTorch's scaled_dot_product_attention.

    python bench/gpu/attention_calls.py

Microseconds of a plain call in a row, while the GPU catches up behind: medians of batches, in
turns. "out" is a call with a given result, "gradients" one that records gradients, and "backward"
its backward pass through autograd. "Python" is the number of Python functions that a call enters.
"""

import statistics
import sys
import time

import torch

from basedsl_cute.ops import attention

BATCHES, CALLS = 11, 40
SHAPES = [(1, 128, 128, 4, 4, 64), (2, 1, 512, 32, 8, 128)]  # batches, queries, keys, heads, head


def main():
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; microseconds of the host")
    for batches, queries, keys, heads, key_heads, head in SHAPES:
        sizes = ((queries, heads), (keys, key_heads), (keys, key_heads))
        q, k, v = (
            torch.randn(batches, n, h, head, device="cuda", dtype=torch.float16) for n, h in sizes
        )
        calls = contenders(q, k, v)
        for call in calls.values():
            for _ in range(5):
                call()
        times = {name: [] for name in calls}
        for _ in range(BATCHES):
            for name, call in calls.items():
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(CALLS):
                    call()
                times[name].append((time.perf_counter() - start) / CALLS * 1e6)
        shown = [f"{name} {statistics.median(each):.1f}" for name, each in times.items()]
        print(
            f"{tuple(q.shape)} of {keys} keys: {', '.join(shown)}; Python {entered(calls['ours'])}"
        )
    return 0


def contenders(q, k, v):
    """Calls by name."""
    out = torch.empty_like(q)
    turned = [x.transpose(1, 2) for x in (q, k, v)]

    def theirs(*operands):
        return torch.nn.functional.scaled_dot_product_attention(*operands, enable_gqa=True)

    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    their_leaves = [x.detach().requires_grad_() for x in turned]
    made, their_made = attention(*leaves), theirs(*their_leaves)
    grad, their_grad = torch.randn_like(made), torch.randn_like(their_made)

    def backward(result, inputs, given):
        return torch.autograd.grad(result, inputs, given, retain_graph=True)

    return {
        "ours": lambda: attention(q, k, v),
        "PyTorch": lambda: theirs(*turned),
        "out": lambda: attention(q, k, v, out=out),
        "gradients": lambda: attention(*leaves),
        "PyTorch, gradients": lambda: theirs(*their_leaves),
        "backward": lambda: backward(made, leaves, grad),
        "PyTorch, backward": lambda: backward(their_made, their_leaves, their_grad),
    }


def entered(call):
    """The number of Python functions that a call enters."""
    names = []

    def profile(frame, event, _):
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(names)


if __name__ == "__main__":
    sys.exit(main())
