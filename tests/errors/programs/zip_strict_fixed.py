import basedsl_toy as toy


@toy.jit
def products(n):
    total = 0
    for a, b in zip(range(n), range(n)):  # noqa: B905
        total += a * b
    return total


assert products(3) == 5
