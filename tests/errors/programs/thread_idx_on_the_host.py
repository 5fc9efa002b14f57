import basedsl_cute as cute


@cute.jit
def host():
    return cute.arch.thread_idx()[0]


host()
