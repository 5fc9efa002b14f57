import basedsl_toy as toy


@toy.jit
def ordered(k):
    d = {}
    if k > 1:
        d["a"] = 1
        d["b"] = 2
    else:
        d["b"] = 2
        d["a"] = 1
    return d["a"]


ordered(1)
