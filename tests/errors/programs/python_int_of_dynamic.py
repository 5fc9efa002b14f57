import math

import basedsl_toy as toy


@toy.jit
def bits(n: toy.Int64):
    return math.factorial(n)


bits(3)
