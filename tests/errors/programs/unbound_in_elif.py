import basedsl_toy as toy


@toy.jit
def choose(k):
    if k > 3:
        y = 1
    elif k > 2:
        y = 2
    elif k > 1:
        pass
    else:
        y = 3
    return y


choose(1)
