import basedsl_toy as toy


@toy.jit
def factorial(n: toy.Int64):
    result = 1
    while n >= 2:
        result *= n
        n -= 1
    return result


assert factorial(5) == 120
