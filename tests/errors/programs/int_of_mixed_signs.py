import basedsl_toy as toy
from basedsl.numeric import Uint64


@toy.jit
def add(n: toy.Int64, m: Uint64):
    return n + m


add(3, 1)
