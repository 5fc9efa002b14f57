import numpy as np

import basedsl_toy as toy


@toy.jit
def read(x: toy.Buffer, i: toy.Int64):
    return x[i]


read(np.ones(4), 4)
