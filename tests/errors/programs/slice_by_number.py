import basedsl_toy as toy


@toy.jit
def first(k):
    items = [1, 2, 3]
    return sum(items[:k])


first(2)
