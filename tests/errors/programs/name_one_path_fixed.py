import basedsl_toy as toy


@toy.jit
def sign(n: toy.Int64):
    result = 0
    if n > 0:
        result = 1
    return result


assert sign(3) == 1
