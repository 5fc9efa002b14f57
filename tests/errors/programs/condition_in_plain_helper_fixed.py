import basedsl_toy as toy


@toy.jit
def sign(n):
    if n > 0:
        return 1
    return -1


@toy.jit
def signed(n: toy.Int64):
    return sign(n) * n


assert signed(3) == 3
