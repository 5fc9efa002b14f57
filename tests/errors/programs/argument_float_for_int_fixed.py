import basedsl_toy as toy


@toy.jit
def double(n: toy.Float64):
    return 2 * n


assert double(1.5) == 3.0
