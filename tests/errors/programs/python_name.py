import basedsl_toy as toy


@toy.jit
def scaled(n: toy.Int64):
    return n * factor


scaled(3)
