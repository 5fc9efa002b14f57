import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    x[0] = 1.0


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
