import basedsl_toy as toy


@toy.jit
def positive(n):
    if n > 0:
        return 1
    return 0


assert positive(3) == 1
