import numpy as np

import basedsl_cute as cute


@cute.kernel
def shift(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, (64,))
    cute.arch.sync_threads()
    tile[i] = 0.0
    cute.arch.sync_threads()
    tile[i] = x[i]
    cute.arch.sync_threads()
    y[i] = tile[63 - i]


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor):
    shift(x, y).launch(grid=1, block=64)


host(np.zeros(64, np.float32), np.zeros(64, np.float32))
