import basedsl_cute as cute


@cute.jit
def host(x: cute.Tensor):
    pass


host(4)
