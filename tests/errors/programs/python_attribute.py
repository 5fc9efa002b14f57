import basedsl_toy as toy


@toy.jit
def scaled(n: toy.Int64):
    total = 0
    for i in range(n):
        total += i.real_part
    return total


scaled(3)
