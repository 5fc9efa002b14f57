import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    tile = cute.make_tensor((x.iterator + 1).align(16), cute.make_layout(4))
    y[0] = tile.load().reduce(cute.ReductionOp.ADD, cute.Float32(0), 0)


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=1, block=1)


host(np.zeros(64, np.float32), np.zeros(4, np.float32))
