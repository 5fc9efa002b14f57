import numpy as np

import basedsl_cute as cute


@cute.kernel
def fill(x: cute.Tensor):
    x[cute.arch.block_idx()[0]] = 1.0


@cute.jit
def host(x: cute.Tensor):
    fill(x).launch(grid=(cute.size(x) / 2, 1, 1), block=(32, 1, 1))


host(np.zeros(4, np.float32))
