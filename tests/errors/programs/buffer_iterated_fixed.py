import numpy as np

import basedsl_toy as toy


@toy.jit
def total(x: toy.Buffer):
    result = 0.0
    for i in range(len(x)):
        result += x[i]
    return result


assert total(np.ones(4)) == 4.0
