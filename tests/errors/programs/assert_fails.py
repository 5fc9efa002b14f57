import basedsl_toy as toy


@toy.jit
def checked(n: toy.Int64):
    assert n < 10, "n is too large"
    return n


checked(10)
