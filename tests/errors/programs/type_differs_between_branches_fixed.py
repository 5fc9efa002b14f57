import basedsl_toy as toy


@toy.jit
def choose(n: toy.Int64, x: toy.Float64):
    value = n.to(toy.Float64)
    if n > 0:
        value = x
    return value


assert choose(3, 1.5) == 1.5
