import numpy as np

import basedsl_cute as cute


@cute.kernel
def fill(x: cute.Tensor):
    x[0] = 1.0


fill(np.zeros(4, np.float32)).launch(grid=1, block=1)
