import basedsl_toy as toy


@toy.jit
def last_square(n: toy.Int64):
    square = 0
    for i in range(n):
        square = i * i
    return square


assert last_square(3) == 4
