"""A program for torchrun: attention of a sequence over ranks, against attention of all of it, on
GPUs where there are enough, else on the CPU.
"""

import os
import sys
import warnings

import torch
import torch.distributed as dist

from basedsl_cute.ops import distributed as ops

warnings.simplefilter("ignore", UserWarning)  # groups on the CPU say so


def of_rank(x, rank, ranks, balanced):
    if not balanced:
        return x.chunk(ranks, 1)[rank].contiguous()
    parts = x.chunk(2 * ranks, 1)
    return torch.cat([parts[rank], parts[2 * ranks - 1 - rank]], 1)


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    on_gpus = torch.cuda.device_count() >= ranks
    device = torch.device("cuda", rank) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if on_gpus else "gloo")
    tokens, heads, head = (2048, 8, 128) if on_gpus else (64, 1, 32)
    torch.manual_seed(0)
    every = [torch.randn(1, tokens, heads, head).to(device, torch.bfloat16) for _ in range(4)]
    cases = [(False, False), (True, False), (True, True)]
    for causal, balanced in cases if on_gpus else cases[2:]:
        full = [x.double().transpose(1, 2).requires_grad_() for x in every[:3]]
        wanted = torch.nn.functional.scaled_dot_product_attention(*full, is_causal=causal)
        wanted.backward(every[3].double().transpose(1, 2))
        mine = [of_rank(x, rank, ranks, balanced).requires_grad_() for x in every[:3]]
        for _turn in range(3 if on_gpus else 1):
            out = ops.context_attention(*mine, causal=causal, balanced=balanced)
        out.backward(of_rank(every[3], rank, ranks, balanced))
        for name, got, one in zip(
            ("out", "q", "k", "v"),
            (out, *(x.grad for x in mine)),
            (wanted, *(x.grad for x in full)),
            strict=True,
        ):
            right = of_rank(one.transpose(1, 2), rank, ranks, balanced)
            error = float((got.double() - right).abs().max() / right.abs().max())
            assert error < 2e-2, (causal, balanced, name, error)
    print(f"rank {rank}: attention over {ranks} ranks is right on {device.type}", flush=True)
    dist.barrier()
    ops.forget(dist.group.WORLD)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
