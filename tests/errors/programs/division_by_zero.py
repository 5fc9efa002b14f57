import basedsl_toy as toy


@toy.jit
def ratio(n: toy.Int64, m: toy.Int64):
    return n // m


ratio(3, 0)
