import basedsl_toy as toy


@toy.jit
def halve(n: toy.Int64):
    m = n.to(toy.Float64)
    while m > 10:
        m = m / 2
    return m


assert halve(100) == 6.25
