import basedsl_toy as toy


@toy.jit(preprocess=False)
def sign(n: toy.Int64):
    if n > 0:
        return 1
    return -1


sign(3)
