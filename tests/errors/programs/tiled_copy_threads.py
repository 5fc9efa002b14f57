import numpy as np

import basedsl_cute as cute


@cute.kernel
def kernel(x: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8)), cute.make_layout((1, 4)))
    thread = tiled.get_slice(cute.arch.thread_idx()[0])
    part = thread.partition_S(x)
    x[0] = part[0]


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


host(np.zeros(32, np.float32))
