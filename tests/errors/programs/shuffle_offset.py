import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    x[t] = cute.arch.shuffle_sync_bfly(x[t], offset=1.5)


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
