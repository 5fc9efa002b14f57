import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor):
    return cute.size(x)


assert host(np.zeros(4, np.float32)) == 4
