import basedsl_cute as cute
from basedsl_cute.nvgpu import warpgroup


@cute.kernel
def kernel():
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16))
    mma = cute.make_tiled_mma(op)
    smem = cute.utils.SmemAllocator()
    layout = cute.make_layout((64, 64), stride=(64, 1))
    sa = smem.allocate_tensor(cute.Float16, layout, 1024)
    mma.make_fragment_A(mma.get_slice(0).partition_A(sa))


@cute.jit
def host():
    kernel().launch(grid=1, block=128)


host()
