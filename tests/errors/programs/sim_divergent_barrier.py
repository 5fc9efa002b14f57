import basedsl_cute as cute


@cute.kernel
def kernel(n: cute.Int32):
    if cute.arch.thread_idx()[0] < n:
        cute.arch.sync_threads()


@cute.jit
def host(n: cute.Int32):
    kernel(n).launch(grid=1, block=64)


host(32)
