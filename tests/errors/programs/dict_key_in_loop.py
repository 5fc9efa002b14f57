import basedsl_toy as toy


@toy.jit
def table(n: toy.Int64):
    counts = {}
    for i in range(n):
        counts["last"] = i
    return counts


table(5)
