import basedsl_cute as cute
from basedsl_cute.nvgpu import warp


@cute.kernel
def kernel():
    op = warp.MmaI8Op(cute.Int8, cute.Int32, (16, 8, 32))
    cute.make_tiled_mma(op)


@cute.jit
def host():
    kernel().launch(grid=1, block=32)


host()
