import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, (32,))
    y[i] = tile[i]


@cute.jit
def host(y: cute.Tensor):
    kernel(y).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
