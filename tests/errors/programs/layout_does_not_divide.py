import basedsl_cute as cute


@cute.jit
def host():
    cute.composition(cute.make_layout((6, 2)), cute.make_layout(4, stride=5))


host()
