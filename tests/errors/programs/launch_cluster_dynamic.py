import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    x[0] = 1.0


@cute.jit
def host(x: cute.Tensor, n: cute.Int32):
    kernel(x).launch(grid=4, block=32, cluster=(n, 1, 1))


host(np.zeros(32, np.float32), 2)
