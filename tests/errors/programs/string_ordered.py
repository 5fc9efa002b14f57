import basedsl_toy as toy


@toy.jit
def is_before(n: toy.Int64):
    return n < "auto"


is_before(5)
