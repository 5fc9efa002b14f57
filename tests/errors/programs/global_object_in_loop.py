import basedsl_toy as toy

history = []


@toy.jit
def remember(n: toy.Int64):
    for i in range(n):
        history.append(i)


remember(3)
