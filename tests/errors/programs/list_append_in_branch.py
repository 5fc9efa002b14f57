import basedsl_toy as toy


@toy.jit
def collect(n: toy.Int64):
    found = [n]
    if n > 3:
        found.append(n + 1)
    return found[0]


collect(5)
