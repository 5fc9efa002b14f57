import basedsl_toy as toy


@toy.jit
def guarded(n: toy.Int64, m: toy.Int64):
    if m == 0:
        return 0
    return n // m


assert guarded(1, 0) == 0
