import basedsl_toy as toy

history = []


@toy.jit
def remember(n: toy.Int64):
    history.append(n + 1)
    return n


remember(3)
