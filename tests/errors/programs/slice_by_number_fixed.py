import basedsl_toy as toy


@toy.jit
def first(k):
    items = [1, 2, 3]
    total = 0
    for i, item in enumerate(items):
        if i < k:
            total += item
    return total


assert first(2) == 3
