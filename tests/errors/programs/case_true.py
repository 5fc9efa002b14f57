import basedsl_toy as toy


@toy.jit
def positive(n):
    match n > 0:
        case True:
            return 1
        case _:
            return 0


positive(3)
