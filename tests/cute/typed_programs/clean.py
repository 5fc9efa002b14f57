"""A program in which a strict type checker finds nothing: `tests/cute/test_public.py`."""

from dataclasses import dataclass

import numpy as np

import basedsl_cute as cute
import basedsl_toy as toy


@cute.kernel
def add(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, n: cute.Int32, block: cute.Constexpr[int]
) -> None:
    i = cute.arch.block_idx()[0] * block + cute.arch.thread_idx()[0]
    if i < n:
        c[i] = a[i] + b[i]


@cute.jit
def vector_add(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, block: cute.Constexpr[int] = 256
) -> None:
    n = cute.size(c)
    grid = (cute.ceil_div(n, block), 1, 1)
    add(a, b, c, n, block).launch(grid=grid, block=(block, 1, 1))


@cute.jit(preprocess=False)
def traced(n: cute.Int32, static: cute.Constexpr) -> cute.Int32:
    return cute.Int32(n + static)


@dataclass(frozen=True)
class Scale:
    factor: float
    block: int = 128

    @cute.kernel
    def kernel(self, x: cute.Tensor) -> None:
        i = cute.arch.block_idx()[0] * self.block + cute.arch.thread_idx()[0]
        if i < cute.size(x):
            x[i] = x[i] * self.factor

    @cute.jit
    def __call__(self, x: cute.Tensor) -> None:
        grid = (cute.ceil_div(cute.size(x), self.block), 1, 1)
        self.kernel(x).launch(grid=grid, block=(self.block, 1, 1), smem=0)


@cute.struct
class Counters:
    hits: cute.Int32
    misses: cute.Int32


@cute.native_struct
class Range:
    first: cute.Int32
    count: cute.Int64


@cute.kernel
def count(x: cute.Tensor, span: Range) -> None:
    counters = cute.utils.SmemAllocator().allocate(Counters)
    counters.hits = span.first
    number: cute.Int32 = span.first + 1
    x[0] = cute.Float32(counters.hits + number)


@cute.jit
def counted(x: cute.Tensor, span: Range) -> None:
    count(x, span).launch(grid=1, block=1)


@toy.jit
def dot(a: toy.Buffer, b: toy.Buffer) -> toy.Float64:
    total = toy.Float64(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


class Counter:
    def __init__(self, step: int) -> None:
        self.step = step

    @toy.jit
    def next(self, x: toy.Int64) -> toy.Int64:
        return toy.Int64(x + self.step)


def main() -> tuple[float, int, str]:
    a, b, c = (np.arange(1000, dtype=np.float32) for _ in range(3))
    vector_add(a, b, c)
    vector_add(a, b, c, block=128)
    compiled = cute.compile(vector_add, a, b, c, options="--opt-level 2")
    compiled(a, b, c)
    vector_add.compile(a, b, c)(a, b, c)
    Scale(2.0)(c)
    span = Range()
    span.first = cute.Int32(3)
    counted(c, span)
    total: float = dot(np.ones(3), np.ones(3))
    number: int = traced(3, 4) + Counter(2).next(5)
    return total, number, compiled.__ptx__ or vector_add.__name__ + dot.source


if __name__ == "__main__":
    print(main())
