import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    cute.arch.barrier(barrier_id=16, number_of_threads=32)


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
