"""A program for torchrun: collectives over a grid of ranks, two "hosts" of half of them each, on
GPUs where there are enough, else on the CPU.
"""

import os
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from basedsl_cute.ops import distributed as ops

warnings.simplefilter("ignore", UserWarning)  # groups on the CPU say so


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    kind = "cuda" if torch.cuda.device_count() >= ranks else "cpu"
    if kind == "cuda":
        torch.cuda.set_device(rank)
    shapes = [(ranks // 2, 2), (ranks, 1), (1, ranks)]
    for hosts, each in shapes:
        mesh = init_device_mesh(kind, (hosts, each), mesh_dim_names=("host", "gpu"))
        inner, outer = mesh["gpu"], mesh["host"]
        for count in (1, 7, 64):
            x = [
                torch.arange(count * 3.0, device=kind).view(count, 3) * (r + 1)
                for r in range(ranks)
            ]
            mine = x[rank].clone().requires_grad_()
            total = ops.hierarchical_all_reduce(mine, inner, outer)
            assert torch.equal(total, sum(x)), (hosts, each, count)
            total.sum().backward()
            assert torch.equal(mine.grad, torch.full_like(mine, ranks)), (hosts, each, count)
            gathered = ops.hierarchical_all_gather(x[rank], inner, outer)
            assert torch.equal(gathered, torch.cat(x)), (hosts, each, count)
        dist.barrier()
        for group in (inner, outer):
            ops.forget(group.get_group())
    print(f"rank {rank}: {len(shapes)} grids are right on {kind}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
