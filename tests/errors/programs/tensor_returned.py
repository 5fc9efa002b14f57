import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor):
    return x


host(np.zeros(4, np.float32))
