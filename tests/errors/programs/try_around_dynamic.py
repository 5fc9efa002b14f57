import basedsl_toy as toy


@toy.jit
def guarded(n: toy.Int64, m: toy.Int64):
    try:
        return n // m
    except ZeroDivisionError:
        return 0


guarded(1, 0)
