import basedsl_toy as toy


@toy.jit
def sign(n: toy.Int64):
    if toy.const_expr(n > 0):
        return 1
    return -1


sign(3)
