import numpy as np

import basedsl_cute as cute


@cute.struct
class Storage:
    values: cute.struct.MemRange[cute.Float32, 32]


@cute.kernel
def kernel(x: cute.Tensor):
    storage = cute.utils.SmemAllocator().allocate(Storage)
    x[0] = storage.vals[0]


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
