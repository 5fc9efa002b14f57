import basedsl_toy as toy


@toy.jit
def scaled(x: toy.Float64):
    return x * 1e39


assert scaled(2.0) == 2e39
