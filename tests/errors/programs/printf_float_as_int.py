import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Float32):
    cute.printf("%d\n", x)


@cute.jit
def host(x: cute.Float32):
    kernel(x).launch(grid=1, block=1)


host(3.0)
