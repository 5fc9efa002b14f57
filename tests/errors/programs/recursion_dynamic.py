import basedsl_toy as toy


@toy.jit
def factorial(n: toy.Int64):
    if n < 2:
        return 1
    return n * factorial(n - 1)


factorial(5)
