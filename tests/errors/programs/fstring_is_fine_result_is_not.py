import basedsl_cute as cute


@cute.jit
def host(n: cute.Int32):
    label = f"n is {n}"
    return label + n


host(3)
