import basedsl_toy as toy


@toy.jit
def small(n: toy.Int64):
    return n


assert small(2**40) == 2**40
