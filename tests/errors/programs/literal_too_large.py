import basedsl_toy as toy


@toy.jit
def small(n: toy.Int32):
    return n + 5_000_000_000


small(1)
