import basedsl_toy as toy


@toy.jit
def double(n: toy.Int64):
    return 2 * n


double(1.5)
