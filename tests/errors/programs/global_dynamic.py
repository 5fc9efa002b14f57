import basedsl_toy as toy

largest = 0


@toy.jit
def update(n: toy.Int64):
    global largest
    largest = n


update(3)
