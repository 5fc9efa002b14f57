import basedsl_cute as cute


@cute.jit
def host():
    cute.utils.SmemAllocator().allocate_tensor(cute.Float32, (32,))


host()
