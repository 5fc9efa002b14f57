import basedsl_toy as toy


@toy.jit(preprocess=False)
def total(n: toy.Int64):
    result = 0
    for i in range(n):
        result += i
    return result


total(3)
