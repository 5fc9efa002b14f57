import numpy as np

import basedsl_toy as toy


@toy.jit
def first(x: toy.Buffer):
    return x[0]


first(np.array(["a", "b"]))
