import basedsl_cute as cute
from basedsl_cute.nvgpu import warp, warpgroup


@cute.kernel
def kernel():
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    mma.set(warpgroup.Field.ACCUMULATE, False)


@cute.jit
def host():
    kernel().launch(grid=1, block=32)


host()
