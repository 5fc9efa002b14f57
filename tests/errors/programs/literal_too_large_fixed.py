import basedsl_toy as toy


@toy.jit
def small(n: toy.Int64):
    return n + 5_000_000_000


assert small(1) == 5_000_000_001
