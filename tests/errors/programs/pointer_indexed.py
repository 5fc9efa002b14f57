import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    smem = cute.utils.SmemAllocator()
    counts = smem.allocate_array(cute.Int32, 32)
    counts[cute.arch.thread_idx()[0]] = 0


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.int32))
