import basedsl_toy as toy


@toy.jit
def double(n: toy.Int64):
    return 2 * n


toy.compile(double, 3, options="--opt-level 3")
