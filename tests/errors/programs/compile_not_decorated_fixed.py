import basedsl_toy as toy


@toy.jit
def double(n):
    return 2 * n


toy.compile(double, 3)
