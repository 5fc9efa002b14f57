import numpy as np

import basedsl_cute as cute


@cute.kernel
def first(x: cute.Tensor, result: cute.Tensor):
    result[0] = x[0]


@cute.jit
def host(x: cute.Tensor, result: cute.Tensor):
    first(x, result).launch(grid=1, block=1)


host(np.zeros(4, np.float32), np.zeros(1, np.float32))
