import basedsl_toy as toy


@toy.jit
def squares(n: toy.Int64):
    found = []
    for i in range(n):
        found.append(i * i)
    return found[0]


squares(5)
