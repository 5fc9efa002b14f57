import basedsl_toy as toy


@toy.jit
def last_square(n: toy.Int64):
    for i in range(n):
        square = i * i
    return square


last_square(3)
