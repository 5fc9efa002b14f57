import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor):
    return len(x)


host(np.zeros(4, np.float32))
