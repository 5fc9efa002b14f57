import numpy as np

import basedsl_cute as cute


@cute.kernel
def copy(x: cute.Tensor, y: cute.Tensor):
    y[0] = (x[0] * 2).to(cute.Float16)


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor):
    copy(x, y).launch(grid=1, block=1)


host(np.zeros(4, np.float32), np.zeros(4, np.float16))
