import basedsl_toy as toy


@toy.jit
def scaled(x: toy.Float32):
    return x * 1e39


scaled(2.0)
