import basedsl_toy as toy


@toy.jit
def convert(n: toy.Int64):
    return n.to("float32")


convert(3)
