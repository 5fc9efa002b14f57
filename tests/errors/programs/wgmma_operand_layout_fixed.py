import basedsl_cute as cute
from basedsl_cute.nvgpu import warpgroup
from basedsl_cute.utils import hopper_helpers as sm90


@cute.kernel
def kernel():
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16))
    mma = cute.make_tiled_mma(op)
    smem = cute.utils.SmemAllocator()
    row = sm90.LayoutEnum.ROW_MAJOR
    layout = sm90.make_smem_layout_a(row, (64, 64, 64), cute.Float16, 1)
    swizzle = cute.recast_layout(8, 16, layout.inner)
    sa = smem.allocate_tensor(cute.Float16, layout.outer, 1024, swizzle)
    mma.make_fragment_A(mma.get_slice(0).partition_A(sa))


@cute.jit
def host():
    kernel().launch(grid=1, block=128)


host()
