import basedsl_toy as toy


@toy.jit
def kind(n):
    if n > 0:
        result = 1
    return result


def scaled(n):
    return 2 * kind(n)


@toy.jit
def entry(n: toy.Int64):
    total = 0
    for i in range(n):
        total += scaled(i)
    return total


entry(3)
