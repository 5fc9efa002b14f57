import basedsl_toy as toy


@toy.jit
def combine(größe: toy.Int64, x: toy.Float64):
    return ("猫", größe ^ x)[1]


combine(3, 1.5)
