import basedsl_toy as toy


@toy.jit
def convert(n: toy.Int64):
    return n.to(toy.Float32)


assert convert(3) == 3.0
