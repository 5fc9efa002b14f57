import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(n: cute.Int32, y: cute.Tensor):
    y[0] = 7 // n


@cute.jit
def host(n: cute.Int32, y: cute.Tensor):
    kernel(n, y).launch(grid=1, block=1)


host(0, np.zeros(1, np.int32))
