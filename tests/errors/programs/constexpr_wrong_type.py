import basedsl_toy as toy


@toy.jit
def repeat(n: toy.Int64, times: toy.Constexpr[int]):
    return n * times


repeat(1, 2.5)
