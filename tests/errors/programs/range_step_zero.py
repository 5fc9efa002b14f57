import basedsl_toy as toy


@toy.jit
def total(n: toy.Int64):
    result = 0
    for i in range(0, n, 0):
        result += i
    return result


total(3)
