import basedsl_toy as toy


def lookup(sizes, key):
    if key not in sizes:
        raise KeyError(f"no size is called {key}")
    return sizes[key]


@toy.jit
def scaled(n: toy.Int64):
    return n * lookup({"small": 1}, "large")


scaled(3)
