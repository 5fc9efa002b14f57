import basedsl_toy as toy


@toy.jit
def pairs(n: toy.Int64):
    return sum([n ^ weight for weight in (1, 0.5)])


pairs(3)
