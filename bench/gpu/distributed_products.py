"""Matrix products with communication on the GPUs of one host, against the product alone, NCCL and
PyTorch's fused operations.

    python bench/gpu/distributed_products.py [--out rows.json] [--seconds 100] [--parts gather,...]

A process for each GPU. First random products are compared with float64; then the shapes of
tensor-parallel layers: the product after an all-gather is that of a feed-forward layer's first
matrix, the product before a reduce-scatter or an all-reduce that of its second. Times are those of
`distributed.py`.
"""

import argparse
import random
import sys
import time
from functools import partial

import distributed
from distributed import Run, on_all_gpus

SHAPES = [  # tokens, hidden
    (512, 4096),
    (2048, 4096),
    (8192, 4096),
    (1024, 8192),
    (4096, 8192),
    (16384, 8192),
    (2048, 16384),
    (8192, 16384),
]
NBYTES = 1 << 30
WIDE = {"tile": (128, 256, 64), "cluster": (2, 1), "stages": 4, "along_m": False, "deferred": True}
SQUARE = {"tile": (128, 128, 64), "cluster": (2, 1), "stages": 6, "pingpong": True, "swizzle": 16}
SMALL = {"tile": (64, 128, 64), "cluster": (2, 1), "stages": 8, "pingpong": True}
FOURS = SMALL | {"cluster": (4, 1)}
EVEN = {"tile": (128, 128, 64), "cluster": (2, 1), "stages": 6, "deferred": True, "along_m": False}
HALF = {"tile": (64, 256, 64), "cluster": (2, 1), "stages": 4, "pingpong": True}
WAYS = {"wide": WIDE, "square": SQUARE, "small": SMALL, "even": EVEN, "half": HALF, "fours": FOURS}
REGISTERS = {"producer_registers": 40}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--parts", help="names of the parts to run, with commas between them")
    parser.add_argument("--variants", help="other configurations, such as wide,square: "
                        "with the communication, and the product alone")  # fmt: skip
    parser.add_argument("--paces", help="other paces of the transfers, such as 0,0.9")
    text = "the kernels without bytes over the link, and without peers"
    parser.add_argument("--bounds", action="store_true", help=text)
    parser.add_argument("--only", nargs="*", default=[""], help="shapes such as '512 x 4096'")
    options = parser.parse_args()
    options.check_only, options.blocks = False, 264
    return on_all_gpus(options, products_main)


def products_main(rank, count, options, began):
    distributed.rank_main(rank, count, options, began, Products)


def configuration(options):
    from basedsl_cute.ops.hopper.config import Config

    return Config(**options | REGISTERS)


class Products(Run):
    """The measurements of one rank."""

    def __init__(self, rank, count, options, began):
        from basedsl_cute.ops import distributed as ops

        super().__init__(rank, count, options, began)
        self.products = ops.product_workspace(nbytes=NBYTES, timeout=10.0)

    def everything(self):
        names = self.options.parts or "check,gather,scatter,everywhere"
        for name in names.split(","):
            if self.left() < 5:
                self.say(f"no time for {name}")
                continue
            begin = time.time()
            getattr(self, name)()
            self.say(f"-- {name}: {time.time() - begin:.1f} s")

    def check(self):
        """Products of random extents, with random delays of each rank, against float64."""
        import torch

        choice, done, limit = random.Random(3), 0, time.time() + 25
        while done < 60 and not self._late(limit):
            kind = ("gather", "scatter", "everywhere")[done % 3]
            rows, n, k = choice.choice([1, 64, 130, 1000]), choice.choice([8, 264, 1024]), 8
            k *= choice.choice([1, 9, 64, 300])
            torch.cuda._sleep(choice.randrange(300_000) * choice.choice([0, 1]))
            seed = choice.randrange(1 << 30)
            weights = [one / k**0.5 for one in self._inputs(torch.bfloat16, (n, k), seed + 50)]
            gathers = kind == "gather"
            size = rows if gathers else rows * self.count
            x = self._inputs(torch.bfloat16, (size, k), seed)
            y = torch.full(
                (rows if kind == "scatter" else rows * self.count, n), float("nan"),
                dtype=torch.bfloat16, device="cuda",
            )  # fmt: skip
            mine = x[self.rank], weights[self.rank], y
            config = configuration(choice.choice([SQUARE, SMALL, WIDE]))
            if gathers:
                self.products.all_gather_matmul(*mine, config)
                wanted = torch.cat(x).double() @ weights[self.rank].double().T
            else:
                wanted = sum(a.double() @ b.double().T for a, b in zip(x, weights, strict=True))
                if kind == "scatter":
                    self.products.matmul_reduce_scatter(*mine, config)
                    wanted = wanted[self.rank * rows : (self.rank + 1) * rows]
                else:
                    self.products.matmul_all_reduce(*mine, config)
            bad = (y.double() - wanted).abs() > 4e-2 * (wanted.abs() + 1)
            if bool(bad.any()) or bool(y.isnan().any()):
                raise AssertionError(f"{kind} {rows, n, k}: {int(bad.sum())} of {y.numel()} wrong")
            done += 1
        torch.cuda.synchronize()
        self.products.check()
        self.say(f"{done} random products are right")

    def _each(self, what, contenders):
        """Measure contenders on each shape: `contenders(tokens, hidden)` makes them."""
        for tokens, hidden in SHAPES:
            if not any(text in f"{tokens} x {hidden}" for text in self.options.only):
                continue
            if self.left() < 6:
                self.say("no time for the other shapes")
                return
            flops = 2 * tokens * hidden * hidden * 4 / self.count
            calls = max(1, min(10, int(3e-3 / (flops / 7e14))))
            self.measure(f"{what} {tokens} x {hidden}", contenders(tokens, hidden), calls)

    def _matrix(self, rows, columns):
        import torch

        return torch.randn(rows, columns, device="cuda").to(torch.bfloat16) / columns**0.5

    def _variants(self, method, mine, alone):
        """The product with communication, and with other configurations and paces; the former of
        the product alone of `alone`, two matrices, too.
        """
        from product_bounds import bounds

        from basedsl_cute.ops import matmul
        from basedsl_cute.ops.distributed.products import ProductWorkspace

        product = getattr(self.products, method)
        named = {"ours": partial(product, *mine)}
        space = self.products
        for pace in (self.options.paces or "").split(","):
            if pace:
                one = ProductWorkspace(
                    space.memory, NBYTES, space.blocks, space._launches._stream, float(pace)
                )
                call = partial(getattr(one, method), *mine)
                named[f"ours p{pace}"] = call
                for name in (self.options.variants or "").split(","):
                    if name:
                        named[f"ours {name} p{pace}"] = partial(call, configuration(WAYS[name]))
        if self.options.bounds:
            named |= bounds(space, method, mine, method == "matmul_all_reduce")
        if self.options.variants:
            out = matmul(*alone)
            for name in self.options.variants.split(","):
                cfg = configuration(WAYS[name])
                named[f"ours {name}"] = partial(product, *mine, cfg)
                named[f"alone {name}"] = partial(matmul, *alone, out=out, config=cfg)
        return named

    def gather(self):
        """All-gather with product."""
        import torch
        import torch.distributed as dist

        from basedsl_cute.ops import matmul

        name = dist.group.WORLD.group_name

        def contenders(tokens, hidden):
            n = 4 * hidden // self.count
            x, weight = self._matrix(tokens // self.count, hidden), self._matrix(n, hidden)
            whole = torch.empty(tokens, hidden, dtype=x.dtype, device="cuda")
            dist.all_gather_into_tensor(whole, x)
            y = torch.empty(tokens, n, dtype=x.dtype, device="cuda")

            def nccl():
                dist.all_gather_into_tensor(whole, x)
                torch.matmul(whole, weight.T, out=y)

            fused = torch.ops.symm_mem.fused_all_gather_matmul
            alone = whole, weight.T
            return self._variants("all_gather_matmul", (x, weight, y), alone) | {
                "product ours": partial(matmul, whole, weight.T, out=y),
                "product cuBLAS": partial(torch.matmul, whole, weight.T, out=y),
                "NCCL, cuBLAS": nccl,
                "torch fused": partial(fused, x, [weight.T], 0, name),
            }

        self._each("gather", contenders)

    def _sum(self, what, everywhere):
        import torch
        import torch.distributed as dist

        from basedsl_cute.ops import matmul

        name = dist.group.WORLD.group_name

        def contenders(tokens, hidden):
            k = 4 * hidden // self.count
            x, weight = self._matrix(tokens, k), self._matrix(hidden, k)
            whole = torch.empty(tokens, hidden, dtype=x.dtype, device="cuda")
            part = torch.empty(tokens // self.count, hidden, dtype=x.dtype, device="cuda")

            def nccl():
                torch.matmul(x, weight.T, out=whole)
                if everywhere:
                    dist.all_reduce(whole)
                else:
                    dist.reduce_scatter_tensor(part, whole)

            alone = x, weight.T
            found = {
                "product ours": partial(matmul, x, weight.T, out=whole),
                "product cuBLAS": partial(torch.matmul, x, weight.T, out=whole),
                "cuBLAS, NCCL": nccl,
            }
            if everywhere:
                return self._variants("matmul_all_reduce", (x, weight, whole), alone) | found
            fused = torch.ops.symm_mem.fused_matmul_reduce_scatter
            found["torch fused"] = partial(fused, x, weight.T, "sum", 0, name)
            return self._variants("matmul_reduce_scatter", (x, weight, part), alone) | found

        self._each(what, contenders)

    def link(self):
        """Copies to the next rank, by all ranks at once, beside those of as many bytes here: what
        the transfer of a product takes that nothing hides.
        """
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as memory

        for nbytes in (1 << 21, 1 << 22, 1 << 26):
            device = torch.device("cuda", self.rank)
            shared = memory.empty(nbytes, dtype=torch.uint8, device=device)
            handle = memory.rendezvous(shared, dist.group.WORLD.group_name)
            peer = (self.rank + 1) % self.count
            there = handle.get_buffer(peer, (nbytes,), torch.uint8)
            x, y = torch.zeros_like(shared), torch.zeros_like(shared)
            ways = {"to the peer": partial(there.copy_, x), "here": partial(y.copy_, x)}
            self.measure(f"link {nbytes >> 20} MiB", ways)

    def scatter(self):
        """Product with reduce-scatter."""
        self._sum("scatter", False)

    def everywhere(self):
        """Product with all-reduce."""
        self._sum("all-reduce", True)


if __name__ == "__main__":
    sys.exit(main())
