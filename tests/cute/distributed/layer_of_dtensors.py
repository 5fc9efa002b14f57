"""A program for torchrun: a feed-forward layer of DTensors, rows and hidden units over ranks, whose
products communicate; against the layer of whole tensors, on GPUs where there are enough.
"""

import functools
import os
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.experimental import local_map

from basedsl_cute.ops import distributed as ops

warnings.simplefilter("ignore")  # groups on the CPU say so


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    kind = "cuda" if torch.cuda.device_count() >= ranks else "cpu"
    if kind == "cuda":
        torch.cuda.set_device(rank)
    mesh = init_device_mesh(kind, (ranks,), mesh_dim_names=("tp",))
    rows, columns = [Shard(0)], [Shard(1)]
    gather = local_map(
        functools.partial(ops.all_gather_matmul, group=mesh["tp"]),
        out_placements=columns,
        in_placements=(rows, rows),
        device_mesh=mesh,
    )
    scatter = local_map(
        functools.partial(ops.matmul_reduce_scatter, group=mesh["tp"]),
        out_placements=rows,
        in_placements=(columns, columns),
        device_mesh=mesh,
    )
    torch.manual_seed(0)  # the same on all ranks
    dtype, bound = (torch.bfloat16, 2e-2) if kind == "cuda" else (torch.float64, 1e-10)
    shapes = (256, 128), (512, 128), (128, 512)
    whole = [(torch.randn(s) / s[1] ** 0.5).to(kind, dtype).requires_grad_() for s in shapes]
    grad = torch.randn(256, 128).to(kind, dtype)
    x, up, down = (
        distribute_tensor(one.detach(), mesh, how).requires_grad_()
        for one, how in zip(whole, (rows, rows, columns), strict=True)
    )
    y = scatter(torch.nn.functional.silu(gather(x, up)), down)
    assert isinstance(y, DTensor) and list(y.placements) == rows
    y.backward(distribute_tensor(grad, mesh, rows))
    wanted = torch.nn.functional.silu(whole[0] @ whole[1].T) @ whole[2].T
    wanted.backward(grad)
    for got, one in zip((y, x.grad, up.grad, down.grad), (wanted, *(w.grad for w in whole)),
                        strict=True):  # fmt: skip
        error = (got.full_tensor() - one).abs().max() / one.abs().max()
        assert float(error) < bound, float(error)
    print(f"rank {rank}: a layer of DTensors is right on {kind}", flush=True)
    dist.barrier()
    ops.forget(mesh["tp"].get_group())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
