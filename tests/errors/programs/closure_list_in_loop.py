import basedsl_toy as toy


@toy.jit
def leak(n: toy.Int64):
    kept = []

    def keep(x):
        kept.append(x)

    for i in range(n):
        keep(i)
    return kept[0]


leak(3)
