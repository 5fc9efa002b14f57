import basedsl_toy as toy


@toy.jit
def repeat(n: toy.Int64, times: toy.Constexpr):
    return n * times


@toy.jit
def twice(n: toy.Int64):
    return repeat(n, n)


twice(3)
