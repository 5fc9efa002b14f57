import basedsl_toy as toy


@toy.jit
def forget(n: toy.Int64):
    m = n + 1
    if n > 3:
        del m
    return m


forget(3)
