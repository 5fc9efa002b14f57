import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor[cute.Int32, 1]):
    pass


host(np.zeros(4, np.int32))
