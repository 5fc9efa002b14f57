import basedsl_toy as toy

largest = 0


@toy.jit
def update(n: toy.Int64):
    return n


largest = update(3)
assert largest == 3
