import basedsl_toy as toy


@toy.jit
def early(n: toy.Int64):
    if n > 10:
        return n


early(5)
