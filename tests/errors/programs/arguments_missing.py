import basedsl_toy as toy


@toy.jit
def area(width: toy.Int64, height: toy.Int64):
    return width * height


area(1)
