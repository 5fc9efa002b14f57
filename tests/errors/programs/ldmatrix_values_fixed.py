import basedsl_cute as cute
from basedsl_cute.nvgpu import warp


@cute.kernel
def kernel():
    mma = cute.make_tiled_mma(warp.MmaI8Op(cute.Int8, cute.Int32, (16, 8, 16)), permutation_mnk=(32, 8, 16))
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), cute.Int8)
    cute.make_tiled_copy_A(atom, mma)


@cute.jit
def host():
    kernel().launch(grid=1, block=32)


host()
