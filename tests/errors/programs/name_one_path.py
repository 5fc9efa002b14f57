import basedsl_toy as toy


@toy.jit
def sign(n: toy.Int64):
    if n > 0:
        result = 1
    return result


sign(3)
