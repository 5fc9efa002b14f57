import basedsl_toy as toy


def make():
    seen = 0

    @toy.jit
    def update(n: toy.Int64):
        nonlocal seen
        seen = n + 1

    return update


make()(3)
