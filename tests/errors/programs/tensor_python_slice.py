import numpy as np

import basedsl_cute as cute


@cute.kernel
def fill(x: cute.Tensor, n: cute.Int32):
    x[:n] = 1.0


@cute.jit
def host(x: cute.Tensor, n: cute.Int32):
    fill(x, n).launch(grid=1, block=1)


host(np.zeros(4, np.float32), 2)
