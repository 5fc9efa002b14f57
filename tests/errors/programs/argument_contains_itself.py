import basedsl_toy as toy


@toy.jit
def first(values):
    return values[0]


values = [1, 2]
values.append(values)
first(values)
