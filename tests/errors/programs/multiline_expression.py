import basedsl_toy as toy


@toy.jit
def combine(n: toy.Int64, x: toy.Float64):
    return (
        n
        ^ x
    )


combine(3, 1.5)
