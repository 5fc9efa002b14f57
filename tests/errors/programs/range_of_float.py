import basedsl_toy as toy


@toy.jit
def total(x: toy.Float64):
    result = 0
    for i in range(x):
        result += i
    return result


total(3.0)
