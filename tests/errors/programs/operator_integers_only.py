import basedsl_toy as toy


@toy.jit
def mask(n: toy.Int64, x: toy.Float64):
    return n & x


mask(3, 1.5)
