import basedsl_toy as toy


@toy.jit
def total(*values):
    result = 0
    for value in values:
        result += value
    return result


total(1, "two", 3)
