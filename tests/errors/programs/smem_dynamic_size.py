import basedsl_cute as cute


@cute.kernel
def kernel(n: cute.Int32):
    cute.utils.SmemAllocator().allocate_tensor(cute.Float32, (n,))


@cute.jit
def host(n: cute.Int32):
    kernel(n).launch(grid=1, block=1)


host(32)
