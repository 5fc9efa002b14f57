import numpy as np

import basedsl_toy as toy


@toy.jit
def check(x: toy.Buffer):
    if x:
        return 1
    return 0


check(np.ones(3))
