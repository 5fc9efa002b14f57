import basedsl_toy as toy


@toy.jit
def double(n: "Int46"):
    return 2 * n


double(3)
