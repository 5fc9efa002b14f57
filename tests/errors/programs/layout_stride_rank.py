import basedsl_cute as cute


@cute.jit
def host():
    cute.make_layout((4, 2), stride=(1, 4, 8))


host()
