"""A rank of the tests on several GPUs: `python ranks_on_gpus.py MODE`, with the environment of
torchrun. It prints what it found, one line for each.

    together   collectives and products in graphs, on several streams and in several groups at once
    operations products with communication as operations of PyTorch: gradients, torch.compile
    killed     the last rank kills itself; the others say how their collectives end
"""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

from basedsl_cute.distributed import PeerTimeoutError
from basedsl_cute.ops import distributed as ops

LIMIT = 1.0  # seconds


def together(rank, ranks):
    """Several workspaces, groups, streams and graphs at once, with random delays of each rank."""
    groups = [dist.group.WORLD, dist.new_group(list(range(ranks)))]
    spaces = [ops.workspace(group, blocks=16, timeout=20.0) for group in groups]
    streams = [torch.cuda.Stream() for _ in groups]
    products = ops.product_workspace(nbytes=1 << 24, timeout=20.0)
    size = 1 << 18
    x = [torch.full((size,), float(rank + 1 + n), device="cuda") for n in range(2)]
    y = [torch.empty_like(one) for one in x]
    a = torch.full((128, 256), 0.5, device="cuda", dtype=torch.bfloat16)
    b = torch.full((256, 256), 0.25, device="cuda", dtype=torch.bfloat16)
    c = torch.empty(128 * ranks, 256, device="cuda", dtype=torch.bfloat16)

    def work(n):
        spaces[n].all_reduce(x[n], y[n])
        spaces[n].all_reduce(x[n], y[n], "two_shot")

    for n in range(2):
        work(n)
    products.all_gather_matmul(a, b, c)
    torch.cuda.synchronize()
    graphs = []
    for n in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work(n)
            if n == 0:
                products.all_gather_matmul(a, b, c)
        graphs.append(graph)
    generator = torch.Generator().manual_seed(rank)
    for turn in range(1000):
        for n, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                x[n].fill_(rank + turn % 7 + n)
                torch.cuda._sleep(int(torch.randint(0, 50_000, (), generator=generator)))
                if turn % 2:
                    graphs[n].replay()
                else:
                    work(n)
        if turn % 50 == 0:
            torch.cuda.synchronize()
            for n in range(2):
                wanted = sum(r + turn % 7 + n for r in range(ranks))
                assert bool((y[n] == wanted).all()), (turn, n)
            assert bool((c == 32).all()), turn
            c.zero_()
            graphs[0].replay()
            torch.cuda.synchronize()
            assert bool((c == 32).all()), turn
            dist.barrier()
    torch.cuda.synchronize()
    for space in (*spaces, products):
        space.check()
    print("1000 turns on two streams, in two groups, in graphs and not, are right")


def operations(rank, ranks):
    """A feed-forward layer with its rows and its hidden units over ranks, against one GPU."""
    torch.manual_seed(1)  # the same on all ranks
    shapes = (512, 256), (1024, 256), (256, 1024)  # rows of all ranks, the two matrices
    x, up, down = (torch.randn(shape, device="cuda") / shape[1] ** 0.5 for shape in shapes)
    grad = torch.randn(512, 256, device="cuda")

    def shares(of_all, *modes):
        made = [one.bfloat16().chunk(ranks, mode)[rank].contiguous()
                for one, mode in zip(of_all, modes, strict=True)]  # fmt: skip
        return [one.requires_grad_() for one in made]

    def layer(x, up, down):
        hidden = torch.nn.functional.silu(ops.all_gather_matmul(x, up))
        return ops.matmul_reduce_scatter(hidden, down)

    def with_all(x, up, down):  # all ranks have all rows
        hidden = torch.nn.functional.silu(x @ up.T)
        return ops.matmul_all_reduce(hidden, down)

    whole = [one.bfloat16().double().requires_grad_() for one in (x, up, down)]
    wanted = torch.nn.functional.silu(whole[0] @ whole[1].T) @ whole[2].T
    wanted.backward(grad.bfloat16().double())
    for function in (layer, torch.compile(layer, fullgraph=True)):
        mine = shares((x, up, down), 0, 0, 1)
        y = function(*mine)
        y.backward(grad.bfloat16().chunk(ranks)[rank])
        _close(y, wanted.chunk(ranks)[rank])
        for one, other, mode in zip(mine, whole, (0, 0, 1), strict=True):
            _close(one.grad, other.grad.chunk(ranks, mode)[rank])
    rows = x.bfloat16()
    _close(with_all(rows, *shares((up, down), 0, 1)), wanted)
    print("a feed-forward layer is that of one GPU, forward and backward, compiled too")


def _close(got, wanted):
    bound = 2e-2 * float(wanted.abs().max())
    assert float((got.double() - wanted).abs().max()) <= bound, (got, wanted)


def killed(rank, ranks):
    """The last rank is gone after its first collective."""
    space = ops.workspace(blocks=8, timeout=LIMIT)
    x = torch.ones(1 << 16, device="cuda")
    y = torch.empty_like(x)
    space.all_reduce(x, y)
    torch.cuda.synchronize()
    assert bool((y == ranks).all())
    dist.barrier()
    if rank == ranks - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    begin = time.time()
    space.all_reduce(x, y, "one_shot")
    torch.cuda.synchronize()
    try:
        space.check()
    except PeerTimeoutError as error:
        print(f"after {time.time() - begin:.2f} s: {str(error).splitlines()[0]}", flush=True)
    y.fill_(3)
    torch.cuda.synchronize()
    print(f"the process goes on: {bool((y == 3).all())}", flush=True)
    os._exit(0)  # NCCL would wait for the rank that is gone


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    modes = {"together": together, "operations": operations, "killed": killed}
    modes[sys.argv[1]](rank, ranks)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
