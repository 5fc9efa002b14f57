import basedsl_toy as toy


@toy.jit
def name(n: toy.Int64):
    if n == 0:
        return 10
    else:
        return 20


assert name(1) == 20
