import basedsl_toy as toy


@toy.jit
def total(n: toy.Int64):
    result = 0
    for i in toy.range_constexpr(n):
        result += i
    return result


total(3)
