import basedsl_toy as toy


@toy.jit
def pick(n: toy.Int64):
    pair = (n, n) if n > 3 else (n,)
    return pair[0]


pick(3)
