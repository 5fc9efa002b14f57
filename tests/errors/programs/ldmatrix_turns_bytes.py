import basedsl_cute as cute
from basedsl_cute.nvgpu import warp


@cute.kernel
def kernel():
    cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=True, num_matrices=4), cute.Float8E5M2)


@cute.jit
def host():
    kernel().launch(grid=1, block=32)


host()
