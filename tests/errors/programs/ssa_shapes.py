import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    a = cute.make_rmem_tensor(4, cute.Float32)
    b = cute.make_rmem_tensor(8, cute.Float32)
    a.fill(0.0)
    b.fill(1.0)
    a.store(a.load() + b.load())


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
