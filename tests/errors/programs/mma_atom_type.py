import basedsl_cute as cute


@cute.jit
def host(n: cute.Int32):
    op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float32, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op)
    return n + mma.size


host(1)
