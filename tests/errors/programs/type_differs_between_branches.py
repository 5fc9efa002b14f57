import basedsl_toy as toy


@toy.jit
def choose(n: toy.Int64, x: toy.Float64):
    value = n
    if n > 0:
        value = x
    return value


choose(3, 1.5)
