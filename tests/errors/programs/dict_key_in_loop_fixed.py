import basedsl_toy as toy


@toy.jit
def table(n: toy.Int64):
    counts = {"last": 0}
    for i in range(n):
        counts["last"] = i
    return counts


assert table(5) == {"last": 4}
