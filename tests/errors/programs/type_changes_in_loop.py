import basedsl_toy as toy


@toy.jit
def halve(n: toy.Int64):
    m = n
    while m > 10:
        m = m / 2
    return m


halve(100)
