import basedsl_toy as toy


@toy.jit
def same(n, m):
    return 1 if n == m else 0


assert same(3, 3) == 1
