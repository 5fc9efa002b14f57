import basedsl_cute as cute
from basedsl_cute.nvgpu import warpgroup


@cute.kernel
def kernel(n: cute.Constexpr):
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, n, 16))
    cute.make_tiled_mma(op, (2, 1, 1))


@cute.jit
def host(n: cute.Constexpr):
    kernel(n).launch(grid=1, block=256)


host(100)
