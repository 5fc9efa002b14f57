import numpy as np

import basedsl_cute as cute


@cute.struct
class Storage:
    keys: cute.struct.MemRange[cute.Int32, 32]
    values: cute.struct.MemRange[cute.Float32, 32]


@cute.kernel
def kernel(x: cute.Tensor):
    storage = cute.utils.SmemAllocator().allocate(Storage)
    values = storage.values.get_tensor(cute.make_layout(32))
    x[cute.arch.thread_idx()[0]] = values[31]


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
