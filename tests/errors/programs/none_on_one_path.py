import basedsl_toy as toy


@toy.jit
def largest(n: toy.Int64):
    best = None
    for i in range(n):
        if i % 3 == 0:
            best = i
    return best


largest(5)
