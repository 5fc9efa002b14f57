"""An epilogue passed as a class: metaprogramming is ordinary Python.

Each thread sums one row of `x` and hands the sum to the epilogue, which is static: `ReLU` costs one
comparison, the identity nothing. The loop over columns is captured as one loop at run time, or
unrolled while compiling where `columns` is given.

    python examples/cute/epilogue.py
"""

import numpy as np

import basedsl_cute as cute

DEBUG = False
print_debug = lambda message: DEBUG and cute.printf(message)  # noqa: E731


class Epilogue:
    def run(self, value):
        print_debug("identity epilogue\n")
        return value


class ReLU(Epilogue):
    def run(self, value):
        print_debug("ReLU epilogue\n")
        return cute.where(value > 0.0, value, 0.0)


@cute.jit
def accumulate(x: cute.Tensor, row, col, acc):
    return acc + x[row, col]


@cute.kernel
def row_sums_kernel(
    epilogue: cute.Constexpr, x: cute.Tensor, y: cute.Tensor, columns: cute.Constexpr
):
    row = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if row < cute.size(y):
        acc = cute.Float32(0.0)
        if cute.const_expr(columns is None):
            for col in range(x.shape[1]):
                acc = accumulate(x, row, col, acc)
        else:
            for col in cute.range_constexpr(columns):
                acc = accumulate(x, row, col, acc)
        y[row] = epilogue().run(acc)


@cute.jit
def row_sums(
    epilogue: cute.Constexpr, x: cute.Tensor, y: cute.Tensor, columns: cute.Constexpr = None
):
    n = cute.size(y)
    row_sums_kernel(epilogue, x, y, columns).launch(
        grid=(cute.ceil_div(n, 64), 1, 1), block=(64, 1, 1)
    )


if __name__ == "__main__":
    x = np.random.randn(100, 16).astype(np.float32)
    y = np.empty(100, np.float32)
    for epilogue in (Epilogue, ReLU):
        row_sums(epilogue, x, y)
        print(epilogue.__name__, "min:", y.min())
