import basedsl_cute as cute
from basedsl_cute.nvgpu import warp


@cute.kernel
def kernel():
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    a = mma.make_fragment_A(mma.partition_shape_A((16, 16)))
    b = mma.make_fragment_B(mma.partition_shape_B((8, 16)))
    c = cute.make_rmem_tensor(mma.partition_shape_C((16, 8)), cute.Float16)
    cute.gemm(mma, c, a, b, c)


@cute.jit
def host():
    kernel().launch(grid=1, block=32)


host()
