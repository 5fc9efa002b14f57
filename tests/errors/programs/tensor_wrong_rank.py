import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor[cute.Float32, 2]):
    pass


host(np.zeros(4, np.float32))
