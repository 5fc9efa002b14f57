import basedsl_toy as toy


@toy.jit
def total(x: toy.Float64):
    result = 0
    for i in range(toy.Int64(x)):
        result += i
    return result


assert total(3.0) == 3
