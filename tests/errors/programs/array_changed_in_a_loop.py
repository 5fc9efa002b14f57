import numpy as np

import basedsl_toy as toy


@toy.jit
def count(n: toy.Int64):
    found = np.zeros(1)
    for i in range(n):
        found[0] += 1
    return found[0]


count(3)
