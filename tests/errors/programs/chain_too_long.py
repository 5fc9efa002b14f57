import basedsl_toy as toy


def down(n, depth):
    if depth == 0:
        return n ^ 1.5
    return down(n, depth - 1)


@toy.jit
def entry(n: toy.Int64):
    return down(n, 20)


entry(3)
