import numpy as np

import basedsl_toy as toy


@toy.jit
def middle(x: toy.Buffer):
    return x[len(x) // 2]


assert middle(np.ones(4)) == 1.0
