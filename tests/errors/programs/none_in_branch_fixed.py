import basedsl_toy as toy


@toy.jit
def clip(n: toy.Int64):
    limit = 0
    if n > 10:
        limit = n
    return limit


assert clip(5) == 0
