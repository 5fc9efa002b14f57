import basedsl_toy as toy


@toy.jit
def clip(n: toy.Int64):
    limit = None
    if n > 10:
        limit = n
    return limit


clip(5)
