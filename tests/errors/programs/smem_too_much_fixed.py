import os

import numpy as np

import basedsl_cute as cute

os.environ["CUTE_DSL_ARCH"] = "sm_90a"


@cute.kernel
def kernel(x: cute.Tensor):
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, (50_000,))
    i = cute.arch.thread_idx()[0]
    tile[i] = x[i]
    cute.arch.sync_threads()
    x[i] = tile[31 - i]


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


cute.compile(host, np.zeros(32, np.float32))
