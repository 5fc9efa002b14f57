import basedsl_toy as toy


@toy.jit
def squares(n: toy.Constexpr):
    found = []
    for i in toy.range_constexpr(n):
        found.append(i * i)
    return found[2]


assert squares(5) == 4
