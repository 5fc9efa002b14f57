import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor, factor: cute.Float32):
    @cute.kernel
    def kernel(x: cute.Tensor, factor: cute.Float32):
        i = cute.arch.thread_idx()[0]
        if i < cute.size(x):
            x[i] = x[i] * factor

    kernel(x, factor).launch(grid=1, block=32)


x = np.ones(32, np.float32)
host(x, 2.0)
assert (x == 2).all()
