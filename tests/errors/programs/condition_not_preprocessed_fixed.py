import basedsl_toy as toy


@toy.jit(preprocess=True)
def sign(n: toy.Int64):
    if n > 0:
        return 1
    return -1


assert sign(3) == 1
