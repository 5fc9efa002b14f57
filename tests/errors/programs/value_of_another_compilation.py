import basedsl_cute as cute

kept = []


@cute.jit
def keeps(n: cute.Int32):
    kept.append(n)
    return n


@cute.jit
def uses(n: cute.Int32):
    return n + kept[0]


keeps(1)
uses(2)
