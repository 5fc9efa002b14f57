import basedsl_toy as toy


@toy.jit
def guarded(n: toy.Int64):
    n = n + 1
    return n


assert guarded(1) == 2
