import basedsl_toy as toy


@toy.jit
def repeat(n: toy.Int64, times):
    return n * times


@toy.jit
def twice(n: toy.Int64):
    return repeat(n, n)


assert twice(3) == 9
