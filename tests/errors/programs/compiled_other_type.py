import basedsl_toy as toy


@toy.jit
def double(n):
    return 2 * n


compiled = toy.compile(double, 3)
compiled(1.5)
