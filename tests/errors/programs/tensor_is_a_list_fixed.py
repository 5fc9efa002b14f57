import numpy as np

import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor):
    pass


host(np.array([1.0, 2.0]))
