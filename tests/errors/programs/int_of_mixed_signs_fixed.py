import basedsl_toy as toy
from basedsl.numeric import Uint64


@toy.jit
def add(n: toy.Int64, m: Uint64):
    return n + m.to(toy.Int64)


assert add(3, 1) == 4
