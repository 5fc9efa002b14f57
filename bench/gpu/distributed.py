"""Collectives between the GPUs of one host, against NCCL and PyTorch's symmetric-memory operations.

    python bench/gpu/distributed.py [--out rows.json] [--seconds 120] [--check-only]

A process for each GPU. First every collective is compared with float64 on random sizes, types and
delays of each rank; then contenders take turns. A time is the longest of all ranks, the median of
rounds: `eager` of calls from Python, one after another, `graph` of the same calls in a CUDA graph.
"""

import argparse
import json
import os
import random
import socket
import statistics
import sys
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
SIZES = [64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB]
ROUNDS = 9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--check-only", action="store_true")
    parser.add_argument("--blocks", type=int, default=264)
    parser.add_argument("--parts", help="names of the parts to run, with commas between them")
    options = parser.parse_args()
    return on_all_gpus(options, rank_main)


def on_all_gpus(options, function):
    """Run `function(rank, count, options, began)` in a process for each GPU."""
    import torch

    count = torch.cuda.device_count()
    if count < 2:
        print(f"nothing is measured: two GPUs are needed, and {count} are here")
        if options.out:
            Path(options.out).write_text("[]")
        return 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.multiprocessing.spawn(function, (count, options, time.time()), nprocs=count)
    return 0


def rank_main(rank, count, options, began, kind=None):
    """Run the measurements of a rank, which are those of `Run` or of another `kind`."""
    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore", FutureWarning)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=count, device_id=torch.device(rank))
    run = (kind or Run)(rank, count, options, began)
    try:
        run.everything()
    except Exception:  # printed with its rank, and raised again
        print(f"rank {rank}:\n{traceback.format_exc()}", flush=True)
        raise
    if rank == 0 and options.out:
        Path(options.out).write_text(json.dumps(run.rows, indent=1))
    dist.barrier()
    dist.destroy_process_group()


class Run:
    """All measurements of one rank."""

    def __init__(self, rank, count, options, began):
        import torch

        from basedsl_cute.ops import distributed as ops

        self.rank, self.count, self.options, self.began = rank, count, options, began
        self.rows = []
        self.say(f"start {time.time() - began:.1f} s")
        self.space = ops.workspace(blocks=options.blocks, timeout=20.0)
        self.token = torch.zeros(1, device="cuda")

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def left(self):
        """The seconds left, as rank 0 sees them, so that all ranks stop together."""
        import torch
        import torch.distributed as dist

        left = torch.tensor(self.options.seconds - (time.time() - self.began), device="cuda")
        dist.broadcast(left, 0)
        return float(left)

    def everything(self):
        parts = [self.check, self.late, self.all_reduce, self.norm, self.others, self.sweep]
        if self.options.parts:
            parts = [getattr(self, name) for name in self.options.parts.split(",")]
        for part in parts[: 2 if self.options.check_only else None]:
            if self.left() < 5:
                self.say(f"no time for {part.__name__}")
                continue
            begin = time.time()
            part()
            self.say(f"-- {part.__name__}: {time.time() - begin:.1f} s")

    # Results -------------------------------------------------------------------------------------

    def check(self):
        """Random sizes and types, with random delays of each rank, against float64."""
        import torch

        choice = random.Random(7)  # the same on all ranks
        kinds = ["reduce", "gather", "scatter", "all", "rows", "norm"]
        types = [torch.bfloat16, torch.float32, torch.float16]
        shapes = [1, 65536, 1 << 20, 129, 0, 4096, (1 << 20) + 8, 3, 8000, 72]
        # Few of each, for the sake of the time to compile; they are repeated in random order.
        cases = [(kind, types[n % 3], shapes[n]) for n in range(len(shapes)) for kind in kinds]
        done, limit = 0, time.time() + 40
        while done < 1000:
            if done % 10 == 0 and self._late(limit):
                break
            known = min(len(cases), 6 + done // 4)
            kind, dtype, size = cases[done if done < 6 else choice.randrange(known)]
            delays = [choice.randrange(200_000) * choice.choice([0, 1]) for _ in range(self.count)]
            torch.cuda._sleep(delays[self.rank])
            shift = int(size in (129, 4096))  # inputs that are not aligned
            getattr(self, f"_check_{kind}")(dtype, size, choice.randrange(1 << 30), shift)
            done += 1
        torch.cuda.synchronize()
        self.space.check()
        self.say(f"{done} random collectives are right, of {known} kinds, types and sizes")

    def _late(self, limit):
        import torch
        import torch.distributed as dist

        late = torch.tensor(float(time.time() > limit), device="cuda")
        dist.broadcast(late, 0)
        return bool(late)

    def _inputs(self, dtype, shape, seed, shift=0):
        """All ranks' inputs: the tensors of this process are equal on all ranks."""
        import torch

        made = []
        for rank in range(self.count):
            generator = torch.Generator("cuda").manual_seed(seed + rank)
            count = 1
            for n in shape:
                count *= n
            flat = torch.randn(count + shift, generator=generator, device="cuda").to(dtype)
            made.append(flat[shift:].view(shape))
        return made

    def _close(self, got, wanted, dtype, what):
        import torch

        error = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
        bad = (got.double() - wanted).abs() > error * (wanted.abs() + 1)
        if bool(bad.any()):
            raise AssertionError(f"{what} of {tuple(got.shape)} {dtype}: {int(bad.sum())} wrong")

    def _check_reduce(self, dtype, size, seed, shift):
        import torch

        x = self._inputs(dtype, (size,), seed, shift)
        wanted = sum(one.double() for one in x)
        nbytes = size * x[0].element_size()
        for algorithm in (None, "one_shot", "two_shot"):
            y = torch.full_like(x[0], float("nan"))
            self.space.all_reduce(x[self.rank], y, algorithm)
            self._close(y, wanted, dtype, f"all_reduce {algorithm} {nbytes}")

    def _check_gather(self, dtype, size, seed, shift):
        import torch

        x = self._inputs(dtype, (size,), seed, shift)
        y = torch.full((self.count * size,), float("nan"), dtype=dtype, device="cuda")
        self.space.all_gather(x[self.rank], y)
        if not torch.equal(y, torch.cat(x)):
            raise AssertionError(f"all_gather of {size} {dtype}")

    def _check_scatter(self, dtype, size, seed, shift):
        import torch

        x = self._inputs(dtype, (self.count, size), seed, shift)
        y = torch.full((size,), float("nan"), dtype=dtype, device="cuda")
        self.space.reduce_scatter(x[self.rank], y)
        self._close(y, sum(one.double() for one in x)[self.rank], dtype, "reduce_scatter")

    def _check_all(self, dtype, size, seed, shift):
        import torch

        x = self._inputs(dtype, (self.count, size), seed, shift)
        y = torch.full((self.count, size), float("nan"), dtype=dtype, device="cuda")
        self.space.all_to_all(x[self.rank], y)
        if not torch.equal(y, torch.stack([one[self.rank] for one in x])):
            raise AssertionError(f"all_to_all of {size} {dtype}")

    def _check_rows(self, dtype, size, seed, shift):
        import torch

        columns = random.Random(seed).choice([8, 64, 1024])
        most = max(1, min(size, 1 << 20) // columns // self.count)
        matrix = torch.randint(
            0, most + 1, (self.count, self.count), generator=torch.Generator().manual_seed(seed)
        )
        rows = int(matrix.sum(1).max()) + 1
        x = self._inputs(dtype, (rows, columns), seed)
        sizes = matrix[self.rank].int().cuda()
        total = int(matrix[:, self.rank].sum())
        y = torch.full((total + 1, columns), float("nan"), dtype=dtype, device="cuda")
        got = torch.zeros(self.count, dtype=torch.int32, device="cuda")
        self.space.all_to_all_rows(x[self.rank], sizes, y, got)
        starts = torch.cat([torch.zeros(self.count, 1, dtype=torch.long), matrix.cumsum(1)], 1)
        me = self.rank
        wanted = torch.cat(
            [x[s][int(starts[s, me]) : int(starts[s, me + 1])] for s in range(self.count)]
        )
        if not torch.equal(y[:total], wanted) or got.tolist() != matrix[:, me].tolist():
            raise AssertionError(f"all_to_all_rows of {matrix.tolist()} rows of {columns}")

    def _check_norm(self, dtype, size, seed, shift):
        import torch

        rows, columns = random.Random(seed).choice([(1, 64), (3, 4096), (130, 1000), (64, 8192)])
        x = self._inputs(dtype, (rows, columns), seed)
        residual = self._inputs(dtype, (rows, columns), seed + 100)[0]
        weight = self._inputs(dtype, (columns,), seed + 200)[0]
        y = torch.full_like(residual, float("nan"))
        total = sum(one.double() for one in x) + residual.double()
        self.space.all_reduce_norm(x[self.rank], residual, weight, y, 1e-6)
        self._close(residual, total, dtype, "the residual")
        factor = torch.rsqrt((total * total).mean(1, keepdim=True) + 1e-6)
        self._close(y, total * factor * weight.double(), dtype, "all_reduce_norm")

    def late(self):
        """A rank that does not come: the others end within the limit that they were given."""
        import torch
        import torch.distributed as dist

        from basedsl_cute.distributed import PeerTimeoutError
        from basedsl_cute.ops import distributed as ops

        space = ops.workspace(blocks=8, timeout=0.5)
        x = torch.ones(1 << 16, device="cuda")
        said = ""
        if self.rank == 0:
            begin = time.time()
            space.all_reduce(x, torch.empty_like(x), "one_shot")
            torch.cuda.synchronize()
            waited = time.time() - begin
            try:
                space.check()
            except PeerTimeoutError as error:
                said = f"after {waited:.2f} s: {str(error).splitlines()[0]}"
        dist.barrier()
        self.say(f"a rank that is late: {said or 'NO ERROR'}")
        y = torch.empty_like(x)
        self.space.all_reduce(x, y)  # another workspace goes on
        torch.cuda.synchronize()
        self.say(f"another workspace goes on: {bool((y == self.count).all())}")

    # Times ---------------------------------------------------------------------------------------

    def measure(self, what, contenders, calls=10):
        """The times of contenders in microseconds, eager and in a graph, one row."""
        import torch

        ways, failed = {}, {}
        for name, call in contenders.items():
            try:
                call()
                torch.cuda.synchronize()
                ways[name, "eager"] = partial(_repeat, call, calls)
            except Exception as error:  # the others go on
                failed[name] = str(error).splitlines()[0][:90]
                continue
            try:
                ways[name, "graph"] = self._graph(call, calls).replay
            except Exception as error:  # the others go on
                failed[f"{name} in a graph"] = str(error).splitlines()[0][:90]
                torch.cuda.synchronize()
        times = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, call in ways.items():
                times[way].append(self._time(call) / calls)
        row = {"what": what}
        for (name, way), found in times.items():
            row.setdefault(name, {})[way] = round(statistics.median(found), 2)
        row |= {f"{name} failed": text for name, text in failed.items()}
        self.rows.append(row)
        cells = [
            f"{name} {found.get('eager', 0):.1f}/{found.get('graph', 0):.1f}"
            for name, found in row.items()
            if isinstance(found, dict)
        ]
        self.say(
            f"{what:<26} " + "  ".join(cells) + "".join(f"  {k}: {v}" for k, v in failed.items())
        )

    def _graph(self, call, calls):
        import torch

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            call()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        return graph

    def _time(self, call):
        """Microseconds of a call, the longest of all ranks'."""
        import torch
        import torch.distributed as dist

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier()
        torch.cuda.synchronize()
        dist.all_reduce(self.token)  # all GPUs begin together
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        worst = torch.tensor(begin.elapsed_time(end) * 1e3, device="cuda")
        dist.all_reduce(worst, dist.ReduceOp.MAX)
        return float(worst)

    def all_reduce(self):
        """All-reduce of bfloat16 by size."""
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as memory

        name = dist.group.WORLD.group_name
        self.say("all_reduce of bfloat16, microseconds eager/graph")
        for nbytes in SIZES:
            if self.left() < 15:
                break
            count = nbytes // 2
            x = torch.randn(count, device="cuda").to(torch.bfloat16)
            y, z = torch.empty_like(x), x.clone()
            shared = memory.empty(
                count, dtype=torch.bfloat16, device=torch.device("cuda", self.rank)
            )
            memory.rendezvous(shared, name)
            shared.zero_()
            space, symm = self.space, torch.ops.symm_mem
            contenders = {
                "ours": partial(space.all_reduce, x, y),
                "NCCL": partial(dist.all_reduce, z),
                "torch one-shot": partial(symm.one_shot_all_reduce, shared, "sum", name),
                "torch two-shot": partial(symm.two_shot_all_reduce_, shared, "sum", name),
            }
            for algorithm in ("lamport", "one_shot", "two_shot"):
                if algorithm != "lamport" or nbytes <= MIB:
                    contenders[algorithm] = partial(space.all_reduce, x, y, algorithm)
            if nbytes > 4 * MIB:
                del contenders["torch one-shot"]
            z.zero_()
            self.measure(f"all_reduce {_size(nbytes)}", contenders, 10 if nbytes < 64 * MIB else 4)

    def host(self):
        """The host's part of an all-reduce of 64 KiB, without waiting for the GPU: of the call, of
        its parts, and of PyTorch's operation; "launch" is the compiled code with these arguments.
        """
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as memory

        from basedsl_cute.ops.distributed import launches

        name, space = dist.group.WORLD.group_name, self.space
        x = torch.randn(32 * KIB, device="cuda").to(torch.bfloat16)
        y = torch.empty_like(x)
        shared = memory.empty(32 * KIB, dtype=x.dtype, device=torch.device("cuda", self.rank))
        memory.rendezvous(shared, name)
        shared.zero_()
        space.all_reduce(x, y)
        key = "_all_reduce", (None,), launches._key((x, y))
        launch = space._launches._kept[key]
        given = (x, y, launch.memory, *launch.numbers, space._launches._stream())
        ways = {
            "ours": partial(space.all_reduce, x, y),
            "launch": partial(launch.code, *given),
            "check": space.check,
            "key": partial(launches._key, (x, y)),
            "stream": space._launches._stream,
            "torch two-shot": partial(torch.ops.symm_mem.two_shot_all_reduce_, shared, "sum", name),
            "torch one-shot": partial(torch.ops.symm_mem.one_shot_all_reduce, shared, "sum", name),
            "torch fill": partial(y.fill_, 0),
        }
        times = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, call in ways.items():
                dist.barrier()
                torch.cuda.synchronize()
                begin = time.perf_counter()
                _repeat(call, 200)
                times[way].append((time.perf_counter() - begin) / 200 * 1e6)
        torch.cuda.synchronize()
        found = {way: round(statistics.median(all_), 2) for way, all_ in times.items()}
        self.rows.append({"what": "host", **found})
        self.say("host, us of a call: " + "  ".join(f"{k} {v:.2f}" for k, v in found.items()))

    def sweep(self):
        """Other numbers of blocks and threads."""
        import torch

        from basedsl_cute.ops import distributed as ops

        for blocks, threads in ((64, 512), (132, 512), (256, 256), (264, 256)):
            if self.left() < 8:
                break
            space = ops.workspace(blocks=blocks, threads=threads)
            for nbytes in (1 * MIB, 16 * MIB, 256 * MIB):
                x = torch.randn(nbytes // 2, device="cuda").to(torch.bfloat16)
                y = torch.empty_like(x)
                ways = {
                    name: partial(space.all_reduce, x, y, name) for name in ("one_shot", "two_shot")
                }
                what = f"{blocks} x {threads} {_size(nbytes)}"
                self.measure(what, ways, 10 if nbytes < 64 * MIB else 4)

    def norm(self):
        """The all-reduce alone, and with residual and RMSNorm.

        What residual and norm take at least, since they need the sum, is the difference between
        "norm rows" and "copy rows" on one GPU (see `norm_bounds`); "alone in rows" is the
        all-reduce by as many threads in a block as the norm of few rows takes.
        """
        import norm_bounds
        import torch
        import torch.distributed as dist

        from basedsl_cute import ops
        from basedsl_cute.ops import distributed

        in_rows = distributed.workspace(blocks=64, threads=1024)
        for rows, columns in ((16, 8192), (512, 8192), (4096, 8192)):
            if self.left() < 10:
                break
            x = torch.randn(rows, columns, device="cuda").to(torch.bfloat16)
            residual, y, z = torch.zeros_like(x), torch.empty_like(x), x.clone()
            weight = torch.ones(columns, device="cuda", dtype=torch.bfloat16)

            def apart(z=z, residual=residual, weight=weight, columns=columns):
                dist.all_reduce(z)
                torch.nn.functional.rms_norm(z + residual, (columns,), weight, 1e-6)

            ways = {
                "ours with norm": partial(self.space.all_reduce_norm, x, residual, weight, y),
                "ours alone": partial(self.space.all_reduce, x, y),
                "NCCL, then PyTorch": apart,
                "norm here": partial(ops.rms_norm, x, weight, residual=residual),
            }
            ways |= norm_bounds.contenders(self.space, x, residual, weight, y)
            if rows == 16:
                ways["alone in rows"] = partial(in_rows.all_reduce, x, y, "lamport")
            self.measure(f"norm {rows} x {columns}", ways)

    def sweep_norm(self):
        """The all-reduce alone and with residual and norm, with other numbers of blocks."""
        import torch

        from basedsl_cute.ops import distributed as ops

        shapes = (16, 8192), (512, 8192), (4096, 8192)
        for blocks, threads in ((128, 512), (264, 256), (264, 512), (396, 256)):
            if self.left() < 4:
                break
            space = ops.workspace(blocks=blocks, threads=threads)
            for rows, columns in shapes:
                x = torch.randn(rows, columns, device="cuda").to(torch.bfloat16)
                residual, y = torch.zeros_like(x), torch.empty_like(x)
                weight = torch.ones(columns, device="cuda", dtype=torch.bfloat16)
                self.measure(
                    f"{blocks} x {threads} norm {rows} x {columns}",
                    {
                        "with norm": partial(space.all_reduce_norm, x, residual, weight, y),
                        "alone": partial(space.all_reduce, x, y),
                    },
                )

    def others(self):
        """All-gather, reduce-scatter and all-to-all against NCCL's; bytes are those of a rank's
        larger side.
        """
        import torch
        import torch.distributed as dist

        for nbytes in (256 * KIB, 4 * MIB, 64 * MIB, 256 * MIB):
            if self.left() < 8:
                break
            whole = torch.randn(nbytes // 2, device="cuda").to(torch.bfloat16)
            each = whole[: nbytes // 2 // self.count]
            out, part = torch.empty_like(whole), torch.empty_like(each)
            calls = 10 if nbytes < 64 * MIB else 4
            rows = whole.view(-1, 1024)
            even = torch.full((self.count,), rows.shape[0] // self.count, device="cuda").int()
            got = torch.empty_like(even)
            space, turn = self.space, partial(dist.all_to_all_single, out, whole)
            for name, ours, nccl in (
                (
                    "all_gather",
                    partial(space.all_gather, each, out),
                    partial(dist.all_gather_into_tensor, out, each),
                ),
                (
                    "reduce_scatter",
                    partial(space.reduce_scatter, whole, part),
                    partial(dist.reduce_scatter_tensor, part, whole),
                ),
                ("all_to_all", partial(space.all_to_all, whole, out), turn),
                (
                    "all_to_all rows",
                    partial(space.all_to_all_rows, rows, even, out.view(-1, 1024), got),
                    turn,
                ),
            ):
                self.measure(f"{name} {_size(nbytes)}", {"ours": ours, "NCCL": nccl}, calls)


def _repeat(call, calls):
    for _ in range(calls):
        call()


def _size(nbytes):
    return f"{nbytes // MIB} MiB" if nbytes >= MIB else f"{nbytes // KIB} KiB"


if __name__ == "__main__":
    sys.exit(main())
