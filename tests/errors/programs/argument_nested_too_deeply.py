import basedsl_toy as toy


@toy.jit
def same(values):
    return values


values = ()
for _ in range(100_000):
    values = (values,)
same(values)
