import numpy as np

import basedsl_toy as toy


@toy.jit
def fill(x: toy.Buffer):
    for i in range(len(x)):
        x[i] = i * 0.5


fill(np.ones(4, np.int64))
