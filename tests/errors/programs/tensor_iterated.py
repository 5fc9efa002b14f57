import numpy as np

import basedsl_cute as cute


@cute.kernel
def total(x: cute.Tensor, result: cute.Tensor):
    acc = 0.0
    for value in x:
        acc += value
    result[0] = acc


@cute.jit
def host(x: cute.Tensor, result: cute.Tensor):
    total(x, result).launch(grid=1, block=1)


host(np.zeros(4, np.float32), np.zeros(1, np.float32))
