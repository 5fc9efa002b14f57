import basedsl_toy as toy


@toy.jit
def level(n: toy.Int64):
    name = "low"
    if n > 10:
        name = "high"
    return len(name)


level(3)
