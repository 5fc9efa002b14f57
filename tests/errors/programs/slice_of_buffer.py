import numpy as np

import basedsl_toy as toy


@toy.jit
def head(x: toy.Buffer, n: toy.Int64):
    return x[:n]


head(np.ones(4), 2)
