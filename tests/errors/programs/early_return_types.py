import basedsl_toy as toy


@toy.jit
def pick(n: toy.Int64):
    if n > 3:
        return n, n
    return n


pick(3)
