import basedsl_toy as toy


@toy.jit
def kind(n):
    return 1 if type(n) is toy.Int64 else 0


kind(3)
