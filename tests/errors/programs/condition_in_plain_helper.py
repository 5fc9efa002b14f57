import basedsl_toy as toy


def sign(n):
    if n > 0:
        return 1
    return -1


@toy.jit
def signed(n: toy.Int64):
    return sign(n) * n


signed(3)
