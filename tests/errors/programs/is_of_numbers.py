import basedsl_toy as toy


@toy.jit
def same(n, m):
    return 1 if n is m else 0


same(3, 3)
