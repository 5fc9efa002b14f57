import basedsl_toy as toy


def even(n):
    return odd(n - 1)


def odd(n):
    return even(n - 1)


@toy.jit
def entry(n: toy.Int64):
    return even(n)


entry(5)
