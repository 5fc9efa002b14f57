import numpy as np

import basedsl_cute as cute


@cute.jit
def inner(x: cute.Tensor):
    x[0] = 1.0


@cute.kernel
def outer(x: cute.Tensor):
    inner(x)


@cute.jit
def host(x: cute.Tensor):
    outer(x).launch(grid=1, block=1)


host(np.zeros(4, np.float32))
