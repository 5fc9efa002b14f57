import basedsl_toy as toy


@toy.jit
def label(n: toy.Int64):
    return "n = " + n


label(5)
