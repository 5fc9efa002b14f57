import numpy as np

import basedsl_cute as cute


def scaled(x, i):
    return x[i, 0] * 2.0


@cute.kernel
def kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = scaled(x, i)


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
