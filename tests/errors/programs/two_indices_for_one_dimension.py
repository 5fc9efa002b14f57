import numpy as np

import basedsl_toy as toy


@toy.jit
def corner(x: toy.Buffer):
    return x[0, 0]


corner(np.ones(4))
