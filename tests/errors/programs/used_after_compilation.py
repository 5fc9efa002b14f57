import basedsl_toy as toy

kept = []


@toy.jit
def leak(n: toy.Int64):
    kept.append(n)
    return n


leak(3)
kept[0] + 1
