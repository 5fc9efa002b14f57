import basedsl_toy as toy


@toy.jit
def small(n: toy.Int32):
    return n


small(2**40)
