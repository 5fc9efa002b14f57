import basedsl_toy as toy


@toy.jit
def checked(n: toy.Int64):
    if n > 9:
        raise ValueError("n is too large")
    return n


checked(10)
