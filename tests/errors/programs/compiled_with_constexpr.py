import basedsl_toy as toy


@toy.jit
def scaled(n: toy.Int64, factor: toy.Constexpr):
    return factor * n


compiled = toy.compile(scaled, 3, 2)
compiled(3, 2)
