import basedsl_cute as cute


@cute.kernel
def kernel(n: cute.Int32):
    if cute.arch.thread_idx()[0] < n:
        cute.arch.sync_warp()


@cute.jit
def host(n: cute.Int32):
    kernel(n).launch(grid=1, block=32)


host(16)
