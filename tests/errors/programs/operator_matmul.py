import basedsl_toy as toy


@toy.jit
def product(n: toy.Int64, m: toy.Int64):
    return n @ m


product(3, 1)
