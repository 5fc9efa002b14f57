import numpy as np

import basedsl_toy as toy


@toy.jit
def total(x: toy.Buffer):
    result = 0.0
    for value in x:
        result += value
    return result


total(np.ones(4))
