import numpy as np

import basedsl_toy as toy


@toy.jit
def first(x: toy.Buffer):
    return x[0]


data = np.ones(4)
data.flags.writeable = False
first(data)
