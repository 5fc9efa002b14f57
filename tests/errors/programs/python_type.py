import basedsl_toy as toy


def area(width, height):
    return width * height


@toy.jit
def square(n: toy.Int64):
    return area(n)


square(3)
