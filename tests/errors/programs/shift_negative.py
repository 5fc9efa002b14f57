import basedsl_toy as toy


@toy.jit
def shifted(n: toy.Int64):
    return n << -1


shifted(3)
