"""A rank of the tests on several GPUs: `python ranks_on_gpus.py MODE ...`, with the environment of
torchrun. It prints what it found, one line for each.

    together   collectives and products in graphs, on several streams and in several groups at once
    operations products with communication as operations of PyTorch: gradients, torch.compile
    pointers   a symmetric tensor of CuPy's memory, shared by CUDA IPC
    nvshmem    symmetric tensors of NVSHMEM's heap
    killed     the last rank kills itself; the others say how their collectives end
"""

import os
import signal
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.distributed import PeerTimeoutError, SymmetricTensor, from_pointers, pad_bytes
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


@cute.kernel
def sum_kernel(x: SymmetricTensor, y: cute.Tensor):
    i = arch.block_idx()[0] * 32 + arch.thread_idx()[0]
    x.signals.barrier(arch.block_idx()[0])
    total = cute.Float32(0)
    for rank in range(x.num_ranks):
        total += x.peer(rank)[i]
    y[i] = total
    x.signals.barrier(arch.block_idx()[0])


@cute.jit
def sum_of_ranks(x, y: cute.Tensor):
    sum_kernel(x, y).launch(grid=2, block=32)


def pointers(rank, ranks):
    """Plain peer pointers: each rank opens the peers' allocations."""
    import cupy

    runtime = cupy.cuda.runtime
    cupy.cuda.Device(rank).use()

    def shared(count, dtype):
        memory = cupy.cuda.Memory(count * np.dtype(dtype).itemsize)  # of no pool: IPC shares all
        array = cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(memory, 0))
        array.fill(0)
        cupy.cuda.Device().synchronize()
        handles = [None] * ranks
        dist.all_gather_object(handles, runtime.ipcGetMemHandle(memory.ptr))
        return array, [
            memory.ptr if other == rank else runtime.ipcOpenMemHandle(handle)
            for other, handle in enumerate(handles)
        ]

    x, addresses = shared(64, np.float32)
    _pad, pads = shared(pad_bytes(ranks), np.uint8)
    report = torch.zeros(8, dtype=torch.int32).pin_memory()
    symmetric = from_pointers(x, addresses, rank, pads=pads, report=report.numpy(), timeout=5.0)
    y = cupy.zeros(64, np.float32)
    for turn in range(3):
        x[:] = cupy.arange(64) + rank + turn
        cupy.cuda.Device().synchronize()
        dist.barrier()
        sum_of_ranks(symmetric, y)
        cupy.cuda.Device().synchronize()
        symmetric.check()
        wanted = sum(np.arange(64) + other + turn for other in range(ranks))
        assert (cupy.asnumpy(y) == wanted).all(), turn
        dist.barrier()
    print("memory that is shared by CUDA IPC is right")
    for other in range(ranks):
        if other != rank:
            runtime.ipcCloseMemHandle(addresses[other])
            runtime.ipcCloseMemHandle(pads[other])


def nvshmem(rank, ranks):
    """Memory of NVSHMEM's symmetric heap: that of PyTorch, and of nvshmem4py where it is there."""
    symmetric_memory.set_backend("NVSHMEM")
    _sums_of_ranks(cute.distributed.empty((64,), torch.float32, timeout=5.0), rank, ranks)
    print("memory of NVSHMEM, by PyTorch, is right")
    try:
        from cuda.core import Device
        from nvshmem import core
    except ImportError:
        return
    uid = [core.get_unique_id() if rank == 0 else None]
    dist.broadcast_object_list(uid)
    core.init(device=Device(rank), uid=uid[0], rank=rank, nranks=ranks, initializer_method="uid")
    local = core.tensor((64,), torch.float32)
    pad = core.tensor((pad_bytes(ranks),), torch.uint8)
    pad.zero_()
    report = torch.zeros(8, dtype=torch.int32).pin_memory()
    torch.cuda.synchronize()
    dist.barrier()
    made = cute.distributed.from_nvshmem(local, pad, report.numpy(), timeout=5.0)
    _sums_of_ranks(made, rank, ranks)
    print("memory of NVSHMEM, by nvshmem4py, is right")


def _sums_of_ranks(x, rank, ranks):
    y = torch.zeros(64, device="cuda")
    for turn in range(3):
        x.local.copy_(torch.arange(64) + rank + turn)
        torch.cuda.synchronize()
        dist.barrier()
        sum_of_ranks(x, y)
        torch.cuda.synchronize()
        x.check()
        wanted = sum(torch.arange(64) + other + turn for other in range(ranks))
        assert bool((y.cpu() == wanted).all()), turn
        dist.barrier()


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
    modes = {one.__name__: one for one in (together, operations, pointers, nvshmem, killed)}
    for mode in sys.argv[1:]:
        modes[mode](rank, ranks)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
