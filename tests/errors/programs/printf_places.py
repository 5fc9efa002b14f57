import basedsl_cute as cute


@cute.kernel
def kernel(n: cute.Int32):
    cute.printf("{} of {}", n)


@cute.jit
def host(n: cute.Int32):
    kernel(n).launch(grid=1, block=1)


host(3)
