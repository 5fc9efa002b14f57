import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    a = cute.make_rmem_tensor(4, cute.Float16)
    a.store(cute.full(4, 1.0, cute.Float32))


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
