"""A transformer layer in tensor-parallel form: heads and hidden units divided over GPUs of a host.

    torchrun --nproc-per-node 2 examples/torch/tensor_parallel.py

Each rank has a share of the attention heads and of the hidden units of the MLP; the two sums over
ranks are `ops.distributed` collectives. The layer and its gradients are compared with the layer on
one GPU. Without GPUs it runs on the CPU, where the collectives are those of the process group.
"""

import os

import torch
import torch.distributed as dist
from torch import nn

from basedsl_cute.ops import distributed as ops


class ToAll(torch.autograd.Function):
    """The input of a divided layer: all ranks have it, so its gradient is a sum over ranks."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ops.all_reduce(gradient)


class SumOfRanks(torch.autograd.Function):
    """The output of a divided layer: a sum over ranks, of which every rank has the gradient."""

    @staticmethod
    def forward(ctx, x):
        return ops.all_reduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def share(weight, rank, ranks, mode):
    """A rank's share of a matrix along a mode, as a parameter of its own."""
    return nn.Parameter(weight.detach().chunk(ranks, mode)[rank].contiguous().clone())


class Layer(nn.Module):
    """Attention and an MLP with residuals, by `rank` of `ranks`, with the weights of `full`."""

    def __init__(self, hidden, heads, full=None, rank=0, ranks=1):
        super().__init__()
        self.heads, self.size = heads // ranks, hidden // heads
        self.divided = ranks > 1
        names = {"q": 0, "k": 0, "v": 0, "out": 1, "up": 0, "down": 1}  # the mode that is divided
        shapes = dict.fromkeys("qkv", (hidden, hidden))
        shapes |= {
            "out": (hidden, hidden),
            "up": (4 * hidden, hidden),
            "down": (hidden, 4 * hidden),
        }
        for name, mode in names.items():
            if full is None:
                weight = nn.Parameter(torch.randn(shapes[name]) * hidden**-0.5)
            else:
                weight = share(getattr(full, name), rank, ranks, mode)
            setattr(self, name, weight)

    def forward(self, x):
        x = x + self.attention(nn.functional.rms_norm(x, x.shape[-1:]))
        return x + self.mlp(nn.functional.rms_norm(x, x.shape[-1:]))

    def attention(self, x):
        x = ToAll.apply(x) if self.divided else x
        batch, tokens, _ = x.shape
        q, k, v = (
            (x @ w.T).view(batch, tokens, self.heads, self.size).transpose(1, 2)
            for w in (self.q, self.k, self.v)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, tokens, -1) @ self.out.T
        return SumOfRanks.apply(y) if self.divided else y

    def mlp(self, x):
        x = ToAll.apply(x) if self.divided else x
        y = nn.functional.silu(x @ self.up.T) @ self.down.T
        return SumOfRanks.apply(y) if self.divided else y


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cpu")
    if torch.cuda.device_count() >= ranks:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

    torch.manual_seed(0)  # the same weights and inputs on all ranks
    full = Layer(64, 8)
    mine = Layer(64, 8, full, rank, ranks).to(device)
    full = full.to(device)
    x, gradient = (torch.randn(2, 16, 64).to(device) for _ in range(2))
    alone, divided = x.clone().requires_grad_(), x.clone().requires_grad_()
    wanted, got = full(alone), mine(divided)
    wanted.backward(gradient)
    got.backward(gradient)

    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(divided.grad, alone.grad, rtol=1e-4, atol=1e-4)
    for name, mode in {"q": 0, "out": 1, "up": 0, "down": 1}.items():
        share_of = getattr(full, name).grad.chunk(ranks, mode)[rank]
        torch.testing.assert_close(getattr(mine, name).grad, share_of, rtol=1e-4, atol=1e-4)
    if rank == 0:
        print(f"a layer on {ranks} ranks is equal to the layer on one, forward and backward")
    dist.barrier()
    ops.forget(dist.group.WORLD)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
