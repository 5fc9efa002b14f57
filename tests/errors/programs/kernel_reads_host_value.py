import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor, factor: cute.Float32):
    @cute.kernel
    def kernel(x: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        if i < cute.size(x):
            x[i] = x[i] * factor

    kernel(x).launch(grid=1, block=32)


host(np.ones(32, np.float32), 2.0)
