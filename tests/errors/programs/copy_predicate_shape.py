import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    fragment = cute.make_rmem_tensor((4, 2), cute.Float32)
    inside = cute.make_rmem_tensor(3, cute.Boolean)
    inside.fill(True)
    source = cute.make_tensor(x.iterator, cute.make_layout((4, 2)))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    cute.copy(atom, source, fragment, pred=inside)


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
