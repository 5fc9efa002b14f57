import basedsl_toy as toy


@toy.jit
def products(n):
    total = 0
    for a, b in zip(range(n), range(n), strict=True):
        total += a * b
    return total


products(3)
