import basedsl_toy as toy


@toy.jit
def name(n: toy.Int64):
    match n:
        case 0:
            return 10
        case _:
            return 20


name(1)
