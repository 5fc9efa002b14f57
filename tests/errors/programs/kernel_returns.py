import numpy as np

import basedsl_cute as cute


@cute.kernel
def first(x: cute.Tensor):
    return x[0]


@cute.jit
def host(x: cute.Tensor):
    first(x).launch(grid=1, block=1)


host(np.zeros(4, np.float32))
