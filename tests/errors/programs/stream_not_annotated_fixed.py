import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] = 1.0


@cute.jit
def host(x: cute.Tensor, stream: cute.Stream):
    kernel(x).launch(grid=1, block=32, stream=stream)


host(np.zeros(32, np.float32), 0)
