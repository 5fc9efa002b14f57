import basedsl_toy as toy


@toy.jit
def count(n: toy.Int64):
    for i in range(n):
        yield i


count(3)
