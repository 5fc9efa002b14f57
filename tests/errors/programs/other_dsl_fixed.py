import basedsl_toy as toy


def helper(n):
    return n + 1


@toy.jit
def entry(n: toy.Int64):
    return helper(n)


assert entry(3) == 4
