import basedsl_toy as toy


@toy.jit
def pick(n: toy.Int64, sizes: toy.Constexpr):
    return n + sizes[0]


pick(1, [1, 2])
