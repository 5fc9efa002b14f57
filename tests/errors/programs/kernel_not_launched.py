import numpy as np

import basedsl_cute as cute


@cute.kernel
def fill(x: cute.Tensor):
    x[0] = 1.0


@cute.jit
def host(x: cute.Tensor):
    fill(x)


host(np.zeros(4, np.float32))
