import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    tile = cute.local_tile(x, (16, 16), (0, 0))
    x[0] = tile[0]


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
