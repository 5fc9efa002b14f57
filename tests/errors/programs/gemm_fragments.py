import basedsl_cute as cute
from basedsl_cute.nvgpu import warp


@cute.kernel
def kernel():
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    a = mma.make_fragment_A(mma.partition_shape_A((32, 64)))
    b = mma.make_fragment_B(mma.partition_shape_B((16, 32)))
    c = mma.make_fragment_C(mma.partition_shape_C((32, 16)))
    c.fill(0)
    cute.gemm(mma, c, a, b, c)


@cute.jit
def host():
    kernel().launch(grid=1, block=32)


host()
