import basedsl_toy as toy


@toy.jit
def kind(n):
    return 1 if n.dtype is toy.Int64 else 0


assert kind(3) == 1
