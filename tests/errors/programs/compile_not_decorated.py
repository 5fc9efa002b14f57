import basedsl_toy as toy


def double(n):
    return 2 * n


toy.compile(double, 3)
